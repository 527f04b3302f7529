"""Workloads: how they are written, what is served, and what a run makes of them."""

import io
import json
import shutil
from pathlib import Path

import fake_run
import pytest
from conftest import Command
from rich.console import Console

from bentpipe import workload
from bentpipe.cli import summary
from bentpipe.errors import UsageError
from bentpipe.workload import files, www_file

pytestmark = pytest.mark.usefixtures("fake_sim")


def test_the_file_that_is_served_is_always_the_same(tmp_path: Path) -> None:
    size = (1 << 20) + 17
    first = www_file(tmp_path / "a", size).read_bytes()
    assert len(first) == size
    assert www_file(tmp_path / "b", size).read_bytes() == first
    assert not www_file(tmp_path / "d", size, lambda: True).read_bytes()
    assert www_file(tmp_path / "c", size + 1).read_bytes()[:size] != first


@pytest.mark.parametrize(("text", "size"), [("1000", 1000), ("10MiB", 10 * 2**20), ("200 MB", 200 * 10**6)])
def test_sizes(text: str, size: int) -> None:
    assert workload.size(text, "--bytes") == size


@pytest.mark.parametrize("text", ["", "-1", "1.5MB", "10 Mbit", "0"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(UsageError, match="--bytes"):
        workload.size(text, "--bytes")


@pytest.mark.parametrize(
    ("text", "canonical", "files", "total"),
    [
        ("transfer:10MiB", "transfer:10485760", ("10485760",), 10 * 2**20),
        ("transfer:1x1000", "transfer:1000", ("1000",), 1000),
        (" transfer : 3 x 1 kB ", "transfer:3x1000", ("1000-1", "1000-2", "1000-3"), 3000),
        ("resumption:10kB", "resumption:2x10000", ("10000-1", "10000-2"), 20_000),
        ("zerortt:3x10kB", "zerortt:3x10000", ("10000-1", "10000-2", "10000-3"), 30_000),
        ("multiplexing:2x32B", "multiplexing:2x32", ("32-1", "32-2"), 64),
        ("upload:1MiB", "upload:1048576", ("1048576",), 2**20),
    ],
)
def test_a_workload_has_one_form(text: str, canonical: str, files: tuple[str, ...], total: int) -> None:
    one = workload.parse(text, "--workload")
    assert str(one) == canonical
    assert workload.parse(str(one), "again") == one
    assert tuple(one.files) == files and one.size_bytes == total
    assert one.requests == tuple(f"/{name}" for name in files)


@pytest.mark.parametrize("text", files.KIND.testcases)
def test_every_workload_with_a_count_can_be_read_again(text: str) -> None:
    for count in range(2, 5):
        one = workload.parse(f"{text}:{count}x1500", "--workload")
        assert workload.parse(str(one), "again") == one and one.file_count == count


@pytest.mark.parametrize(
    ("text", "error", "hint"),
    [
        ("transfr:1MB", 'unknown test case "transfr"', 'did you mean "transfer"?'),
        ("1MB", 'unknown test case "1MB"', "as in transfer:10MiB"),
        ("transfer", '"transfer" has no size', "transfer:10MiB"),
        ("transfer:", '"transfer:" has no size', "transfer:10MiB"),
        ("transfer:3x", '"transfer:3x" has no size', "transfer:10MiB"),
        ("transfer:0x1MB", "transfer needs at least 1 file", "larger"),
        ("transfer:1 Mbit", '"transfer:1 Mbit": "1 Mbit" is no size', "MiB"),
        ("transfer:" + "9" * 5000, "is no size", "below"),
        ("transfer:" + "9" * 5000 + "x1", "is no size", "below"),
        ("transfer:1000000000GB", "is no size", "below"),
        ("transfer:1\N{SUPERSCRIPT TWO}", "is no size", "MiB"),
        ("transfer:\N{DEVANAGARI DIGIT ONE}kB", "is no size", "MiB"),
        ("transfer:-3x1MB", '"-3x1MB" is no size', "MiB"),
        ("multiplexing:32B", "multiplexing needs a number of files", "multiplexing:2000x32B"),
        ("multiplexing:1x32B", "multiplexing needs at least 2 files", "larger"),
        ("resumption:1x10kB", "resumption needs at least 2 files", "larger"),
    ],
)
def test_what_is_no_workload(text: str, error: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        workload.parse(text, "--workload")
    assert str(caught.value).startswith("--workload: ") and error in str(caught.value)
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("transfer:10485760", "transfer of 10 MiB"),
        ("multiplexing:2000x32", "multiplexing of 2000 files of 32 B"),
        ("upload:100000", "upload of 100 kB"),
        ("page:of-another-version", "page:of-another-version"),
    ],
)
def test_workloads_in_words(text: str, title: str) -> None:
    assert workload.title(text) == title


def test_files_of_one_workload_differ(tmp_path: Path) -> None:
    one = workload.parse("multiplexing:50x32B", "--workload")
    www = tmp_path / "www"
    workload.write_files(www, one)
    assert {path.name for path in www.iterdir()} == set(one.files)
    assert len({path.read_bytes() for path in www.iterdir()}) == 50
    stopped = workload.www_file(tmp_path / "none", 1 << 21, lambda: True)
    assert stopped.stat().st_size == 0


def test_many_small_files_need_room_too(tmp_path: Path) -> None:
    """By their bytes they would fit; a file system gives each a block."""
    free = shutil.disk_usage(tmp_path).free
    small = workload.parse(f"multiplexing:{free // 4000}x1B", "--workload")
    with pytest.raises(UsageError, match=r"--workload: files of .* do not fit"):
        workload.check_space(tmp_path, [small], "--workload", 1)


def test_trials_at_a_time_need_room_side_by_side(tmp_path: Path) -> None:
    quarter = workload.parse(f"transfer:{shutil.disk_usage(tmp_path).free // 4}", "--workload")
    workload.check_space(tmp_path, [quarter], "--workload", 1)
    with pytest.raises(UsageError, match=r"a file of .* and 4 copies of it, .* do not fit") as caught:
        workload.check_space(tmp_path, [quarter], "--workload", 4)
    assert "--jobs" in caught.value.hint


SAT = ["run", "--scenario", "sat", "--client", "toy", "--server", "toy", "--iterations", "2", "--no-report"]


def test_workloads_are_an_axis(bentpipe: Command, fake_sim: Path) -> None:
    one = bentpipe(*SAT, "--bytes", "1MiB", "--out", "A", "--json")
    done = bentpipe(*SAT, "--workload", "transfer:1MiB,transfer:3x1kB", "--workload", "transfer:1048576",
                    "--out", "B", "--json")  # fmt: skip
    found = [(record["workload"], record["size_bytes"], record["iteration"]) for record in done.records()]
    assert found == [
        ("transfer:1048576", 2**20, 1),
        ("transfer:1048576", 2**20, 2),
        ("transfer:3x1000", 3000, 1),
        ("transfer:3x1000", 3000, 2),
    ]
    assert len({record["trial"] for record in done.records()}) == 4
    ours = ("trial", "seed", "packet_log_hash")
    for alone, among in zip(one.records(), done.records(), strict=False):
        assert [alone[key] for key in ours] == [among[key] for key in ours]
    options = json.loads(Path("B/manifest.json").read_text())["options"]
    assert options["workloads"] == ["transfer:1048576", "transfer:3x1000"]


def test_several_workloads_are_told_apart_in_the_tables(bentpipe: Command, fake_sim: Path) -> None:
    done = bentpipe(*SAT, "--workload", "transfer:1MiB,transfer:3x1kB", "--out", "A")
    titles = [line for line in done.out.splitlines() if line.startswith("sat")]
    assert len(titles) == 2
    assert titles[0].endswith(", transfer of 1 MiB") and titles[1].endswith(", transfer of 3 files of 1 kB")
    alone = bentpipe(*SAT, "--bytes", "1MiB", "--out", "B")
    assert "transfer of" not in alone.out


def test_a_test_case_that_a_stack_does_not_list_starts_nothing(
    bentpipe: Command, fake_sim: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FAKE_SIM", "log")
    monkeypatch.setenv("FAKE_SIM_LOG", str(tmp_path / "log"))
    done = bentpipe(*SAT, "--workload", "transfer:1kB,upload:1kB", "--out", "A", "--json")
    assert done.code == 0, done.err
    by_workload = {record["workload"]: record for record in done.records()}
    assert by_workload["transfer:1000"]["outcome"] == "ok"
    assert by_workload.keys() == {"transfer:1000"}
    assert len((tmp_path / "log").read_text().splitlines()) == 2
    assert "2 trials, 2 ok" in done.err
    why = "not applicable: the stack.toml of toy does not list upload"
    assert f"{why}: 1 of 2 combinations" in done.err
    alone = bentpipe(*SAT, "--workload", "upload:1kB", "--out", "B")
    assert alone.code == 2 and f"error: {why}\n" in alone.err
    assert not Path("B").exists()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--workload", "transfer:1kB", "--bytes", "1kB"], "--workload and --bytes cannot both be given"),
        (["--workload", ""], '--workload: "" has an empty name'),
        (["--workload", "upload"], '--workload: "upload" has no size'),
        (["--workload", "transfer:999999999GB"], "--workload: a file of"),
    ],
)
def test_mistakes_in_a_workload_start_nothing(
    bentpipe: Command, fake_sim: Path, arguments: list[str], error: str
) -> None:
    done = bentpipe(*SAT, *arguments)
    assert done.code == 2 and error in done.err and not Path("runs").exists()


def ten_by_ten(workload: str, goodput: bool = True) -> str:
    """What the table of ten stacks looks like, some of whose trials fail."""
    names = ("noq", "quinn", "quiche", "tquic", "s2n-quic", "quic-go", "x-net", "aioquic", "qh3", "ngtcp2")
    records = []
    for client in names:
        for server in names:
            made = fake_run.record("sat", client, server, 1)
            made = fake_run.change(made, outcome="ok", detail="", workload=workload)
            made = fake_run.change(made, goodput_bps=12.34e6 if goodput else None, completion_s=3.0)
            if client == "qh3":
                made = fake_run.change(made, outcome="unsupported", detail="qh3 as client: not started")
            elif server == "x-net":
                made = fake_run.change(made, outcome="transfer_timeout", detail="it took too long")
            records.append(made)
            if server == "aioquic" and client != "qh3":
                records.append(fake_run.change(made, iteration=2, outcome="crashed", detail="exit code 1"))
    out = io.StringIO()
    summary.show(records, {}, Console(file=out, width=80, highlight=False))
    return out.getvalue()


def test_ten_stacks_fit_a_terminal() -> None:
    lines = ten_by_ten("transfer:10485760").splitlines()
    table = lines[1 : next(place for place, line in enumerate(lines) if line.startswith("goodput"))]
    assert max(map(len, table)) <= 80
    assert len(table) == 2 + 10  # one table; names with a hyphen take two lines
    row = next(line for line in table if line.startswith("noq"))
    assert row.split() == ["noq", "12.34!", *["12.34"] * 8, "T"]
    assert next(line for line in table if line.startswith("qh3")).split() == ["qh3", *"U" * 10]
    legend = "\n".join(lines)
    assert "!: some trials failed" in legend and "U: unsupported, T: transfer timeout\n" in legend
    assert "  sat: qh3 → noq, qh3 → quinn, qh3 → quiche and 7 pairs more: 10 unsupported:\n" in legend


def test_many_servers_of_few_clients_are_rows() -> None:
    records = [fake_run.record("sat", "noq:window=6000000", f"quiche:cc=cubic:iw={n}", 1) for n in range(6)]
    out = io.StringIO()
    summary.show(records, {}, Console(file=out, width=80, highlight=False))
    lines = out.getvalue().splitlines()
    assert lines[1].split() == ["server", "\\", "client", "noq:window=6000000"]
    assert [line.split()[0] for line in lines[2:8]] == [f"quiche:cc=cubic:iw={n}" for n in range(6)]
    mean = records[3].goodput_bps
    assert mean is not None and lines[5].split()[1] == f"{mean / 1e6:.2f}"


def test_options_that_are_long_break_no_name() -> None:
    names = ["quinn:cc=bbr:iw=100", "quiche:cc=cubic:ss=standard", "noq:cc=cubic:iw=100", "x:window=6000000"]
    made = [fake_run.record("sat", client, server, n) for client in names for server in names for n in (1, 2)]
    out = io.StringIO()
    summary.show(made, {}, Console(file=out, width=80, highlight=False))
    lines = out.getvalue().partition("\ngoodput")[0].splitlines()
    assert max(map(len, lines)) <= 80
    for name in names:  # a row in every table; options below each other at the head of a column
        assert any(line.startswith(f"{name} ") for line in lines)
        assert all(f":{part}" in "".join(lines) for part in name.split(":")[1:])


def test_a_workload_without_goodput_is_told_in_seconds() -> None:
    text = ten_by_ten("longrtt:5000", goodput=False)
    assert "3.00s!" in text and "3.00s " in text and "12.34" not in text
    assert "\nseconds until all has arrived, mean of successful trials; !: some" in text
    assert max(map(len, text.partition("\nseconds")[0].splitlines())) <= 80


def test_a_long_list_of_failures_is_cut_and_says_so() -> None:
    records = [
        fake_run.change(fake_run.record("sat", f"s{n}", "noq", 1), outcome="crashed", detail=f"why {chr(n)}")
        for n in range(0x100, 0x100 + 40)
    ]
    out = io.StringIO()
    summary.show(records, {}, Console(file=out, width=80, highlight=False))
    assert out.getvalue().count(" crashed: why ") == 30
    assert "… and 10 lines more; the report has all of them" in out.getvalue()


def test_what_went_over_http3_is_marked(tmp_path: Path) -> None:
    records = fake_run.write(tmp_path, stacks=("noq", "quinn"), iterations=1)
    records = [fake_run.change(one, alpn="h3") if one.server == "quinn" else one for one in records]
    out = io.StringIO()
    summary.show(records, {}, Console(file=out, width=80, highlight=False))
    rows = [line.split() for line in out.getvalue().splitlines() if line.startswith(("noq ", "quinn "))]
    # Each row: the client, then goodput and perhaps the mark for noq and for quinn.
    assert len(rows) == 6
    assert all(row.count("h3") == 1 and row[-1] == "h3" for row in rows if row[-1] != "handshake")
    assert "h3: over HTTP/3; what has no such mark is over hq-interop" in out.getvalue()


def test_where_nothing_went_over_http3_there_is_no_mark(tmp_path: Path) -> None:
    records = fake_run.write(tmp_path, stacks=("noq", "quinn"), iterations=1)
    out = io.StringIO()
    summary.show(records, {}, Console(file=out, width=80, highlight=False))
    assert "h3" not in out.getvalue()
