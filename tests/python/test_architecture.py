"""The arrows of ARCHITECTURE.md: who may know whom, and how large a file may become."""

import ast
import json
import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import import_graph
import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "bentpipe"
LONGEST = 600  # lines

# Crate → the crates of this project that it may depend on. Endpoint programs are in none: see below.
ALLOWED = {
    "bentpipe-units": set(),
    "bentpipe-unpack": set(),
    "bentpipe-link": {"bentpipe-units", "bentpipe-unpack"},
    "bentpipe-congestion": {"bentpipe-units"},
    "bentpipe-wire": {"bentpipe-unpack"},
    "bentpipe-analysis": {"bentpipe-wire"},
    "bentpipe-qlog": set(),
    "bentpipe-trace": {"bentpipe-analysis", "bentpipe-qlog", "bentpipe-unpack", "bentpipe-wire"},
    "bentpipe-endpoint": {"bentpipe-units"},
    "bentpipe-endpoint-tests": {"bentpipe-endpoint"},
    "bentpipe-quinn-adapter": {"bentpipe-endpoint"},
    "bentpipe-noq-adapter": {"bentpipe-endpoint", "bentpipe-noq-proto"},
    "bentpipe-noq-options": {
        "bentpipe-congestion",
        "bentpipe-endpoint",
        "bentpipe-noq-adapter",
        "bentpipe-noq-proto",
        "bentpipe-units",
    },
    "bentpipe-noq-proto": {"bentpipe-patched-source"},
    "bentpipe-patched-source": set(),
    "bentpipe-h3": {"bentpipe-patched-source"},
    "bentpipe-netlink": set(),
    "bentpipe-interop": set(),
    "bentpipe-guest": {"bentpipe-endpoint", "bentpipe-netlink"},
    "bentpipe-linux-tcp": {"bentpipe-endpoint", "bentpipe-netlink"},
    "bentpipe-tcp-pep": {
        "bentpipe-endpoint",
        "bentpipe-linux-tcp",
        "bentpipe-netlink",
        "bentpipe-service",
        "bentpipe-units",
    },
    "bentpipe-fec": {"bentpipe-endpoint", "bentpipe-service"},
    "bentpipe-service": {"bentpipe-endpoint", "bentpipe-units"},
    "bentpipe-connections": {
        "bentpipe-endpoint",
        "bentpipe-noq-options",
        "bentpipe-noq-proto",
        "bentpipe-service",
    },
    "bentpipe-masque": {
        "bentpipe-connections",
        "bentpipe-endpoint",
        "bentpipe-fec",
        "bentpipe-h3",
        "bentpipe-netlink",
        "bentpipe-noq-options",
        "bentpipe-noq-proto",
        "bentpipe-service",
        "bentpipe-units",
        "bentpipe-wire",
    },
    "bentpipe-queue-comparison": {"bentpipe-endpoint", "bentpipe-link", "bentpipe-units"},
    "bentpipe-pep": {
        "bentpipe-connections",
        "bentpipe-endpoint",
        "bentpipe-fec",
        "bentpipe-noq-options",
        "bentpipe-noq-proto",
        "bentpipe-service",
        "bentpipe-units",
    },
    "bentpipe-perf": {
        "bentpipe-endpoint",
        "bentpipe-noq-adapter",
        "bentpipe-noq-options",
        "bentpipe-noq-proto",
        "bentpipe-units",
    },
    "bentpipe-noq-bulk": {"bentpipe-endpoint"},
    "bentpipe-reference": {
        "bentpipe-endpoint",
        "bentpipe-noq-adapter",
        "bentpipe-noq-options",
        "bentpipe-quinn-adapter",
    },
    "bentpipe-tunnel-openvpn": set(),
    "bentpipe-benches": {"bentpipe-congestion", "bentpipe-noq-options", "bentpipe-noq-proto"},
    "bentpipe-trial": {
        "bentpipe-analysis",
        "bentpipe-endpoint",
        "bentpipe-link",
        "bentpipe-units",
        "bentpipe-wire",
    },
    "bentpipe-sim": {
        "bentpipe-endpoint",
        "bentpipe-link",
        "bentpipe-trial",
        "bentpipe-units",
        "bentpipe-wire",
    },
    "bentpipe-remote": {
        "bentpipe-endpoint",
        "bentpipe-link",
        "bentpipe-qlog",
        "bentpipe-trial",
        "bentpipe-units",
        "bentpipe-wire",
    },
    "bentpipe-emulator": {
        "bentpipe-analysis",
        "bentpipe-endpoint",
        "bentpipe-link",
        "bentpipe-netlink",
        "bentpipe-trial",
        "bentpipe-units",
        "bentpipe-wire",
    },
}
ENDPOINT_PROGRAMS_MAY_USE = {
    "bentpipe-linux-tcp",
    "bentpipe-congestion",
    "bentpipe-endpoint",
    "bentpipe-endpoint-tests",
    "bentpipe-noq-adapter",
    "bentpipe-noq-options",
    "bentpipe-noq-proto",
    "bentpipe-quinn-adapter",
    "bentpipe-units",
}

# Folder of a crate → the circles among its modules. The list only becomes shorter.
CIRCLES = {
    "endpoints/msquic": ["connection.rs messages.rs stream.rs"],
}

# A quoted path in a source file that goes up.
GOING_UP = re.compile(r"""["'`]([^"'`\s]*\.\./[^"'`\s]*)["'`]""")
# Where the files of any stack may look: what Rust stacks share, data that all programs have in common, and
# the benchmark that is an example of quiche's package, so that its library and settings are the stack's.
SHARED_BY_STACKS = (
    "benches/reference",
    "crates/congestion",
    "crates/endpoint",
    "crates/units",
    "endpoints/certs",
    "Cargo.lock",
)
# Folders beside the stacks' own, for code that these stacks are run with, and no other.
FAMILIES = {
    "aioquic-family": {"aioquic", "qh3"},
    "browser-family": {"chromium", "firefox"},
    "c-family": {"ngtcp2", "picoquic"},
    "debian-family": {"curl", "nginx"},
    "go-family": {"quic-go", "x-net"},
}

# What opens sockets or takes packets apart, and the one folder that may.
PACKET_MODULES = {"socket", "struct", "ssl", "selectors", "select", "asyncio", "aioquic", "scapy", "dpkt"}


def dependencies() -> Iterator[tuple[str, Path, set[str]]]:
    """Every crate of the workspace: its name, its folder, and the crates of it that it depends on."""
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--offline"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    packages = json.loads(done.stdout)["packages"]
    names = {package["name"] for package in packages}
    for package in packages:
        used = {edge["name"] for edge in package["dependencies"] if edge["name"] in names}
        yield package["name"], Path(package["manifest_path"]).parent, used


def test_crates_know_only_what_lies_below_them() -> None:
    for name, folder, used in dependencies():
        is_endpoint_program = folder.parent == ROOT / "endpoints"
        allowed = ENDPOINT_PROGRAMS_MAY_USE if is_endpoint_program else ALLOWED.get(name)
        assert allowed is not None, f"{name}: say in this test what it may depend on"
        assert used <= allowed, f"{name} must not depend on {', '.join(sorted(used - allowed))}"


def test_the_laboratory_knows_no_product() -> None:
    """Proxies and `bentpipe perf` stand on crates of the laboratory, and nothing stands on them."""
    all_crates = list(dependencies())
    products = {name for name, folder, _ in all_crates if folder.parent == ROOT / "products"}
    assert products
    assert not {name for name, _, used in all_crates if used & products and name not in products}


def test_testbeds_compile_neither_tables_nor_logs() -> None:
    """What only the program that analyses needs is not compiled, nor shipped, with those that run trials."""
    for program in ("bentpipe-sim", "bentpipe-emulator"):
        command = [
            "cargo",
            "tree",
            "--package",
            program,
            "--edges",
            "normal",
            "--prefix",
            "none",
            "--offline",
        ]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        compiled = {line.split()[0] for line in done.stdout.splitlines() if line}
        assert "bentpipe-wire" in compiled
        assert not compiled & {"parquet", "qlog", "bentpipe-qlog", "bentpipe-trace"}, program


def test_every_crate_that_is_allowed_something_exists() -> None:
    known = {name for name, _, _ in dependencies()}
    allowed = ALLOWED.keys() | ENDPOINT_PROGRAMS_MAY_USE | set().union(*ALLOWED.values())
    assert allowed <= known


def test_endpoint_programs_share_nothing_but_the_contract() -> None:
    """No file of a stack's folder names another stack, or leads to anything but what all may share."""
    stacks = sorted(file.parent for file in (ROOT / "endpoints").glob("*/stack.toml"))
    assert stacks
    for stack in stacks:
        others = [f"endpoints/{other.name}" for other in stacks if other != stack]
        others += [name for name, members in FAMILIES.items() if stack.name not in members]
        assert_names_none(stack, others)


def test_a_family_is_of_its_stacks_and_knows_none_of_them() -> None:
    """What stacks share has no stack in it, and each of them brings it in, once."""
    beside = {file.name for file in (ROOT / "endpoints").iterdir() if file.is_dir()} - {"certs", "contract"}
    assert {name for name in beside if not (ROOT / "endpoints" / name / "stack.toml").exists()} == set(
        FAMILIES
    )
    for family, members in FAMILIES.items():
        folder = ROOT / "endpoints" / family
        assert_names_none(folder, [f"endpoints/{stack}" for stack in beside - {family}])
        roots = {name.partition(".")[0] for file in folder.glob("*.py") for name in imported(file)}
        assert not roots & members, "only `dialect` and its like may import the library"
        if (module := folder / "go.mod").exists():
            assert "require" not in module.read_text(), "only what is in its stacks may know a library"
        for stack in members:
            assert brings_in(ROOT / "endpoints" / stack, family) == 1, stack


def brings_in(stack: Path, family: str) -> int:
    """How many files of a stack's folder bring in the family: by Python's path, a go.mod, or scripts."""
    if scripts := [*stack.glob("*.sh")]:
        return sum(script.read_text().count(f"sh ../{family}/") for script in scripts)
    if (module := stack / "go.mod").exists():
        return f"=> ../{family}\n" in module.read_text()
    found = [file.name for file in sources(stack) if "sys.path" in file.read_text()]
    return sum(found.count(name) for name in ("endpoint.py", f"load_in_{stack.name}.py"))


def assert_names_none(folder: Path, others: list[str]) -> None:
    """No file of the folder names one of `others` as a whole, or leads out of what it may see."""
    for file in sources(folder):
        text = file.read_text()
        found = [other for other in others if re.search(rf"(?<![\w-]){re.escape(other)}(?![\w-])", text)]
        found += reaching_out(text, file.parent, folder)
        assert not found, f"{file.relative_to(ROOT)} names {', '.join(found)}"


def reaching_out(text: str, folder: Path, stack: Path) -> list[str]:
    """The relative paths in the `text` of a file in `folder` that lead to where `stack` must not look."""
    may = (stack, *(ROOT / place for place in SHARED_BY_STACKS))
    return [
        path
        for path in GOING_UP.findall(text)
        if not any((folder / path).resolve().is_relative_to(place) for place in may)
    ]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ('#[path = "../../../crates/endpoint/src/lib.rs"]', False),
        ('#[path = "../../../crates/sim/src/child.rs"]', True),
        ('#[path = "../../quinn/src/dialect.rs"]', True),
        ('#[path = "../tests/../src/dialect.rs"]', False),
        ('#[path = "sub/../../../quinn/src/dialect.rs"]', True),
        ('include!(r"../../../crates/endpoint/../link/src/lib.rs");', True),
    ],
)
def test_relative_paths_are_resolved(text: str, wrong: bool) -> None:
    stack = ROOT / "endpoints" / "noq"
    assert bool(reaching_out(text, stack / "src", stack)) is wrong


def sources(folder: Path) -> Iterator[Path]:
    for pattern in ("*.rs", "*.py", "*.go", "*.c", "*.cc", "*.h", "*.sh", "*.toml", "go.mod"):
        yield from (file for file in folder.rglob(pattern) if "target" not in file.parts)


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def imported(file: Path) -> set[str]:
    """The names of modules that a Python file imports, in full."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{name.name}" for name in node.names}
    return found


@pytest.mark.parametrize("file", modules(), ids=lambda file: str(file.relative_to(PACKAGE)))
def test_python_touches_no_packet_but_where_it_speaks_with_stacks(file: Path) -> None:
    if file in (PACKAGE / "stacks" / "pipe.py", PACKAGE / "stacks" / "loopback.py"):
        return
    roots = {name.partition(".")[0] for name in imported(file)}
    assert not roots & PACKET_MODULES


# The rooms of the package, from the ground up: each may know those that stand before it. On the ground are
# the modules that stand alone, such as `errors` and `paths`, and the formats of files.
ROOMS = (
    "schema",
    "ground",
    "orbit",
    "weather",
    "workload",
    "stacks",
    "plan",
    "remote",
    "runs",
    "analysis",
    "report",
    "study",
    "execution",
    "contract",
    "objectives",
    "explore",
    "cli",
)
# What rooms do not know though it stands below them.
APART = {
    "analysis": {"stacks", "remote"},
    "report": {"study", "stacks", "remote"},
    "study": {"report", "stacks", "remote"},
    "execution": {"report", "study"},
    "contract": {"report", "study", "runs", "analysis"},
    "objectives": {"report", "study", "contract"},
    "explore": {"study", "contract", "objectives", "remote"},
}
# Only cli prints.
SHOWN = {"rich", "click"}


def room(name: str) -> str | None:
    """The room that the module of that name is in; None if it is none of the package's."""
    parts = name.split(".")
    if parts[0] != "bentpipe" or len(parts) == 1:
        return None
    return parts[1] if (PACKAGE / parts[1]).is_dir() else "ground"


@pytest.mark.parametrize("file", modules(), ids=lambda file: str(file.relative_to(PACKAGE)))
def test_a_room_knows_only_what_lies_below_it(file: Path) -> None:
    where = file.relative_to(PACKAGE)
    own = where.parts[0] if len(where.parts) > 1 else "ground"
    if own == "ground" and file.stem.startswith("__"):
        return
    may = {*ROOMS[: ROOMS.index(own) + 1]} - APART.get(own, set())
    wrong = {name for name in imported(file) if (found := room(name)) is not None and found not in may}
    assert not wrong
    if own != "cli" and where.name != "progress.py":
        assert not SHOWN & {name.partition(".")[0] for name in imported(file)}


def test_modules_of_python_import_each_other_in_one_direction() -> None:
    """Imports inside functions and for type checkers count: who reads one module must read the other."""
    folders = ("studies", "tools", "benches", "tests/python")
    graph = import_graph.of_python([PACKAGE, *(ROOT / folder for folder in folders)])
    assert {"bentpipe.cli.run", "studies.thesis.page", "tools.schemas.generate"} <= graph.keys()
    assert not import_graph.circles(graph)


def test_modules_of_a_crate_import_each_other_in_one_direction() -> None:
    of_rust = ("crates", "products", "middleboxes", "endpoints", "benches", "tools", "examples")
    found = {
        f"{source.parent.relative_to(ROOT)}: {' '.join(sorted(circle))}"
        for source in (one for folder in of_rust for one in ROOT.glob(f"{folder}/*/src"))
        for circle in import_graph.circles(import_graph.of_crate(source))
    }
    known = {f"{crate}: {circle}" for crate, circles in CIRCLES.items() for circle in circles}
    assert not found - known, "modules that import each other in a circle"
    assert not known - found, "circles that are gone: take them out of CIRCLES"


def test_only_the_command_line_prints_errors_and_ends_the_process() -> None:
    for file in modules():
        if file.is_relative_to(PACKAGE / "cli"):
            continue
        text = file.read_text()
        assert "sys.exit" not in text and "error: {" not in text, file.name


def test_no_two_classes_are_called_alike() -> None:
    """One name is one concept. A class may extend the structure of a file under its name."""
    named: dict[str, list[Path]] = {}
    for file in modules():
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ClassDef) and not _extends_itself(node):
                named.setdefault(node.name, []).append(file.relative_to(PACKAGE))
    assert {name: files for name, files in named.items() if len(files) > 1} == {}


def _extends_itself(node: ast.ClassDef) -> bool:
    """Whether it is made as `class Record(schema.Record)`."""
    return any(isinstance(base, ast.Attribute) and base.attr == node.name for base in node.bases)


def test_no_file_is_too_long() -> None:
    of_rust = ("crates", "products", "middleboxes", "endpoints", "benches", "tools", "examples")
    folders = (*of_rust, "python", "guest", "examples", "studies", "tests", "tools", "report-ui/src")
    long = [
        f"{file.relative_to(ROOT)}: {count} lines"
        for folder in folders
        for file in (ROOT / folder).rglob("*")
        if file.suffix in (".py", ".rs", ".go", ".ts", ".c", ".h") and "node_modules" not in file.parts
        if "generated from schemas/" not in file.read_text()[:200]  # a few lines for each column
        if (count := len(file.read_text().splitlines())) > LONGEST
    ]
    assert not long


def test_tests_are_built_on_what_make_setup_built() -> None:
    """No crate is compiled once for programs and once more for tests, because one of them wants a feature
    more: what tests want beyond that stands in the root's Cargo.toml. (Cargo's list of what it would
    compile is unstable.)
    """
    built, tested = units("build"), units("test", "--no-run")
    both = {unit: (built[unit], tested[unit]) for unit in built.keys() & tested.keys()}
    assert len(both) > 200
    assert {unit: features for unit, features in both.items() if features[0] != features[1]} == {}


def units(*command: str) -> dict[tuple[str, ...], set[tuple[str, ...]]]:
    """What cargo compiles of the workspace: package, target, and for whom → sets of features."""
    call = ["cargo", *command, "--workspace", "--release", "--locked", "--offline", "--unit-graph"]
    done = subprocess.run(
        [*call, "-Z", "unstable-options"],
        cwd=ROOT,
        env=os.environ | {"RUSTC_BOOTSTRAP": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for unit in json.loads(done.stdout)["units"]:
        target = unit["target"]
        key = (unit["pkg_id"], *target["kind"], target["name"], unit["mode"], unit["profile"]["opt_level"])
        found.setdefault(key, set()).add(tuple(unit["features"]))
    return found


def test_features_of_what_crates_share_stand_in_one_place() -> None:
    """A feature that one member alone asks for changes the programs of all, which cargo builds together, and
    no stack's hash would know.
    """
    root = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    shared = root["dependencies"]
    endpoint = ROOT / "crates" / "endpoint"  # stands alone, and asks for no more than the root does
    for _, folder, _ in dependencies():
        for name, asked in tomllib.loads((folder / "Cargo.toml").read_text()).get("dependencies", {}).items():
            if name in shared and isinstance(asked, dict):
                known = shared[name].get("features", []) if isinstance(shared[name], dict) else []
                more = set(asked.get("features", [])) - set(known if folder == endpoint else [])
                assert not more, (
                    f"{folder.name}: {name}: put {', '.join(sorted(more))} into the root's Cargo.toml"
                )
