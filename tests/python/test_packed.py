"""Files that are read packed as they are read plain, whatever they are called."""

from __future__ import annotations

import gzip
import subprocess
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bentpipe import packed
from bentpipe.errors import BentpipeError, UsageError
from bentpipe.packed import zstd

HINT = "give another"
TEXT = b"".join(b"%d: what a file may hold\n" % number for number in range(5000))
SKIPPABLE = b"\x5a\x2a\x4d\x18\x03\x00\x00\x00abc"  # a frame of zstd with three bytes that are no content
PACKED = {
    "plain": TEXT,
    "gzip": gzip.compress(TEXT, mtime=0),
    "gzip in members": gzip.compress(TEXT[:100], mtime=0) + gzip.compress(TEXT[100:], mtime=0),
    "zstd": zstd.compress(TEXT),
    "zstd in frames": zstd.compress(TEXT[:100]) + SKIPPABLE + zstd.compress(TEXT[100:]),
    "zstd behind a skippable frame": SKIPPABLE + zstd.compress(TEXT),
}


@pytest.mark.parametrize("how", PACKED)
def test_packing_is_told_by_content(tmp_path: Path, how: str) -> None:
    for name in ("a.json", "a.json.gz", "a.json.zst", "a"):
        (tmp_path / name).write_bytes(PACKED[how])
        assert packed.read(tmp_path / name, len(TEXT), HINT) == TEXT


def test_what_the_programs_pack_is_unpacked(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(TEXT)
    subprocess.run(["gzip", "-9", tmp_path / "a"], check=True)
    assert packed.read(tmp_path / "a.gz", len(TEXT), HINT) == TEXT


@pytest.mark.parametrize("how", PACKED)
def test_more_than_the_limit_is_refused(tmp_path: Path, how: str) -> None:
    (tmp_path / "a").write_bytes(PACKED[how])
    unpacked = "" if how == "plain" else " unpacked"
    with pytest.raises(BentpipeError, match=rf"a: has more than {len(TEXT) - 1} bytes{unpacked}$"):
        packed.read(tmp_path / "a", len(TEXT) - 1, HINT)


@pytest.mark.parametrize("pack", [lambda data: gzip.compress(data, mtime=0), zstd.compress])
def test_a_bomb_takes_no_more_memory_than_the_limit(tmp_path: Path, pack: object) -> None:
    assert callable(pack)
    bomb = pack(bytes(200 * 2**20))
    assert len(bomb) < 2**18
    (tmp_path / "a").write_bytes(bomb)
    del bomb
    tracemalloc.start()
    try:
        with pytest.raises(BentpipeError, match="has more than 4194304 bytes unpacked"):
            packed.read(tmp_path / "a", 2**22, HINT)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 2**24


def test_a_window_that_needs_much_memory_is_refused(tmp_path: Path) -> None:
    packer = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: 30})
    (tmp_path / "a").write_bytes(packer.compress(TEXT) + packer.flush())
    with pytest.raises(BentpipeError, match=r"a: cannot be unpacked: .*too much memory"):
        packed.read(tmp_path / "a", 2**22, HINT)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (PACKED["gzip"][:-1], "is cut off"),
        (PACKED["zstd"][:-1], "is cut off"),
        (PACKED["gzip"] + b"more", "cannot be unpacked: Not a gzipped file"),
        (PACKED["zstd"] + b"more", "cannot be unpacked: "),
        (b"PK\x03\x04\x14\x00", "is packed by zip: unpack it first"),
        (b"BZh91AY", "is packed by bzip2"),
        (b"\xfd7zXZ\x00\x00", "is packed by xz"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(BentpipeError, match=f"a: {said}") as found:
        packed.read(tmp_path / "a", 2**22, HINT)
    assert found.value.hint == HINT


def test_what_is_no_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="none: there is no such file"):
        packed.read(tmp_path / "none", 1, HINT)
    with pytest.raises(UsageError, match="is a folder"):
        packed.read(tmp_path, 1, HINT)


@pytest.mark.parametrize(
    ("name", "plain"),
    [("a.har.gz", "a.har"), ("a.zst", "a"), ("a.har", "a.har"), (".gz", ""), ("a.gz.zst", "a.gz")],
)
def test_names_without_what_packing_appended(name: str, plain: str) -> None:
    assert packed.plain_name(Path("x", name)) == plain


@given(st.sampled_from(sorted(PACKED)), st.data())
def test_damage_ends_in_content_or_in_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, how: str, data: st.DataObject
) -> None:
    """A prefix of a good file, or one with a byte changed."""
    content = bytearray(PACKED[how])
    place = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        del content[place:]
    else:
        content[place] = data.draw(st.integers(0, 255))
    file = tmp_path_factory.mktemp("damaged") / "a"
    file.write_bytes(content)
    try:
        assert len(packed.read(file, 2**20, HINT)) <= 2**20
    except BentpipeError as error:
        assert str(error).startswith(f"{file}")
