"""The qh3 endpoint: what is special to it. `stacks test` holds it against the whole contract."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import children
import pytest
from conftest import Command

from bentpipe import paths
from bentpipe.stacks import catalogue

FOLDER = paths.endpoints() / "qh3"
FAMILY = paths.endpoints() / "aioquic-family"
QH3 = catalogue.load(FOLDER)
BUILT = QH3.entry.folder
RUN = ["run", "--scenario", "goodput", "--iterations", "1", "--bytes", "100kB", "--no-report", "--json"]

pytestmark = pytest.mark.skipif(
    QH3.missing("virtual-time") is not None,
    reason=f"{QH3.missing('virtual-time')}; {QH3.how_to_install}",
)


def in_its_place(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Python code among the modules and packages of the endpoint."""
    mark = {children.MARK: os.environ[children.MARK]}
    env = {
        **mark,
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{FOLDER}:{FAMILY}:{BUILT / 'packages'}",
        **variables,
    }
    command = [sys.executable, "-S", "-c", code]
    return subprocess.run(command, env=env, timeout=60, text=True, capture_output=True, check=False)


@pytest.mark.real_time
def test_it_keeps_the_contract_and_repeats(bentpipe: Command) -> None:
    done = bentpipe("stacks", "test", "qh3")
    assert done.code == 0, done.out
    assert " 0 failed, 0 skipped" in done.out


AGREE = """
import key_shares, ml_kem, qh3._hazmat
for name, ours in key_shares.REPLACEMENTS.items():
    native = getattr(qh3._hazmat, name)
    for client, server in ((ours(), native()), (native(), ours()), (ours(), ours())):
        secret = server.exchange(client.public_key())
        answer = server.shared_ciphertext() if "ML768" in name else server.public_key()
        assert client.exchange(answer) == secret, name
    print(name, len(ours().public_key()) - len(native().public_key()))
"""


def test_its_key_shares_agree_with_those_that_they_replace() -> None:
    done = in_its_place(AGREE)
    assert done.stderr == ""
    assert [line.split()[1] for line in done.stdout.splitlines()] == ["0"] * 5


BAD_KEYS = """
import ml_kem
for key in (bytes(1183), b"\\xff" * 1184):
    try:
        ml_kem.encapsulate(key, bytes(32))
    except ValueError as error:
        print(error)
"""


def test_a_bad_encapsulation_key_is_refused() -> None:
    done = in_its_place(BAD_KEYS)
    assert done.stdout.splitlines() == [
        "an ML-KEM-768 key of 1183 bytes",
        "an ML-KEM-768 key with a coefficient that is not reduced",
    ]


SEEDED = """
import determinism, os
determinism.replace_randomness("00f1e2d3c4b5a697", "client")
print(os.urandom(16).hex())
"""


def test_randomness_follows_the_seed_where_it_is_interposed() -> None:
    interposer = str(BUILT / "interposer.so")
    seeded = {in_its_place(SEEDED, LD_PRELOAD=interposer).stdout for _ in range(2)}
    other = in_its_place(SEEDED.replace("697", "698"), LD_PRELOAD=interposer).stdout
    assert len(seeded) == 1
    assert len(other) == 33
    assert other not in seeded


def test_without_the_interposer_there_is_no_virtual_time() -> None:
    done = in_its_place(SEEDED)
    assert done.returncode != 0
    assert "start it by bentpipe-endpoint-qh3" in done.stderr


# The largest packet is an Initial, padded to 1280 bytes if it may be, or one with stream data, which qh3
# fills but for 26 bytes.
@pytest.mark.parametrize(
    ("variant", "largest"), [("qh3", 1280), ("qh3:mtu=1200", 1200), ("qh3:mtu=1472", 1472 - 26)]
)
def test_mtu(bentpipe: Command, variant: str, largest: int) -> None:
    done = bentpipe(*RUN, "--client", "quinn", "--server", variant, "--trace", "none", "--out", "A")
    assert done.code == 0, done.err
    assert done.records()[0]["largest_packet_bytes"] == largest + 28


def test_a_server_counts_no_padding_outside_packets_and_stalls(bentpipe: Command) -> None:
    """The README says so of qh3 2.1.0; a version that does without the stall needs another README."""
    done = bentpipe(*RUN, "--client", "aioquic", "--server", "qh3", "--trace", "none", "--out", "A")
    assert done.code == 0, done.err
    assert done.records()[0]["outcome"] == "ok"
    assert done.records()[0]["handshake_s"] > 0.5


SPACE = "a folder"


def test_a_folder_that_cannot_be_preloaded_from_is_refused(tmp_path: Path) -> None:
    command = [sys.executable, str(FOLDER / "build.py"), str(tmp_path / SPACE)]
    done = subprocess.run(command, timeout=60, text=True, capture_output=True, check=False)
    assert done.returncode == 1
    assert "LD_PRELOAD takes no path with a space" in done.stderr
    assert not (tmp_path / SPACE).exists()
