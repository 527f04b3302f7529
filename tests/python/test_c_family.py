"""endpoints/c-family: a stack can include its header in C and in C++."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from bentpipe import paths


@pytest.mark.parametrize(
    ("compiler", "standard", "ending"), [("cc", "c99", "c"), ("c++", "c++11", "cc"), ("c++", "c++20", "cc")]
)
def test_the_header_stands_alone(tmp_path: Path, compiler: str, standard: str, ending: str) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} on the PATH")
    source = tmp_path / f"stack.{ending}"
    source.write_text('#include "endpoint.h"\nstruct ep_stack stack;\n')
    family = f"-I{paths.endpoints() / 'c-family'}"
    words = [compiler, f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]
    done = subprocess.run([*words, family, source], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
