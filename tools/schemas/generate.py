"""Makes all that is generated from the definitions in `schemas/`:

    python tools/schemas/generate.py            write it
    python tools/schemas/generate.py --check    say what is not as it would be written, and fail

A new column is an entry in a definition and this command; in Rust the compiler then asks for its value.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import definition
import json_schema
import python_types
import reference_page
import rust_types
import typescript_types
from definition import DefinitionError

ROOT = Path(__file__).resolve().parents[2]
# Of a record, Rust has what the testbed says; and `Record` is a type of TypeScript's own.
IN_RUST = {"Record": "TrialResult"}
IN_TYPESCRIPT = {"Record": "TrialRecord"}
# Which definitions the report and the testbeds know.
TYPESCRIPT = ("record", "manifest", "analysis", "requests", "explore")
RUST = {name: f"crates/trial/src/schema/{name}.rs" for name in ("record", "requests")}
REFERENCE = {"record": "records"}  # pages that are called otherwise than their definition


def generated(path: Path) -> Iterator[tuple[Path, str]]:
    """The files that come of a definition, with their texts."""
    one = definition.read(path)
    yield path.with_suffix(".schema.json"), json_schema.write(one)
    yield ROOT / "python" / "bentpipe" / "schema" / f"{one.name}.py", python_types.write(one)
    if one.name in TYPESCRIPT:
        typescript = typescript_types.write(one, IN_TYPESCRIPT)
        yield ROOT / "report-ui" / "src" / "schema" / f"{one.name}.ts", typescript
    yield ROOT / "docs" / "reference" / f"{REFERENCE.get(one.name, one.name)}.md", reference_page.write(one)
    if one.name in RUST:
        yield ROOT / RUST[one.name], rust_types.write(one, IN_RUST)


def main() -> int:
    """Write or check; the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    try:
        files = [one for path in sorted((ROOT / "schemas").glob("*.toml")) for one in generated(path)]
    except DefinitionError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    stale = [(path, text) for path, text in files if not path.exists() or path.read_text() != text]
    for path, text in stale:
        print(f"{'stale' if check else 'wrote'}: {path.relative_to(ROOT)}")
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    if check and stale:
        print("hint: make schemas", file=sys.stderr)
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
