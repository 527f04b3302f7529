"""Checks of virtual time with two programs in the simulator: what `endpoints/CONTRACT.md` asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from bentpipe.contract.check import PARTNERS, SIZE, SMALLER, Check, partner_of
from bentpipe.contract.stack_pair import PATH, SCENARIO, StackPair, TrialRequest, misses_packets
from bentpipe.stacks import catalogue
from bentpipe.stacks.model import MIGRATE, MULTIPATH, Stack
from bentpipe.workload import www_file

_UNCHECKED = "aioquic"  # its client asks for any path; others refuse one that they could not store
_SEVERAL_PATHS, _LARGER = "leo-terrestrial", 5_000_000
_ENDING, _BEFORE_ITS_END = "terrestrial-leo", "1s"  # its first path ends after 2 s
_LEAST_SHARE = 0.05  # of the bytes to the client, for each of two paths
_REFUSES = "the server answers with RESET_STREAM, over TCP by an end without close_notify,"
PLAIN = f"{SIZE} bytes arrive whole over {SCENARIO} ({PATH})"  # without it, no other trial is made


def checks(stack: Stack, folder: Path) -> Iterator[Check]:
    """A transfer, and if it ends well, all checks that are built on it."""
    partner = partner_of(stack, "virtual-time", stack.file_protocol)
    if partner is None:
        yield Check(PLAIN, None, f"{stack.name} has one role, and none of {', '.join(PARTNERS)} is built")
        return
    client = stack if "client" in stack.roles else partner
    server = stack if "server" in stack.roles else partner
    pair = StackPair(client, server, folder)
    plain = TrialRequest("transfer")
    first = pair.trial(plain)
    yield pair.check(f"{PLAIN}, {pair.title}", plain, first)
    if first["outcome"] != "ok":
        yield Check(
            "several files, refused paths, loss, repetition, logs, other test cases",
            None,
            "there was no transfer",
        )
        return
    yield from _transfers(pair)
    yield from _several_paths(pair)
    yield from _migration(pair)
    yield from _refused_paths(pair)
    yield _repetition(pair, first)
    yield _pipes_alone(pair, first)
    yield from _logs(pair)


def _transfers(pair: StackPair) -> Iterator[Check]:
    several = (*(f"/{size}" for size in SMALLER), f"/{SIZE}")
    lossy = ("forward.loss=2 %", "return.loss=2 %")
    requests = {
        f"{len(several)} files asked for at once arrive whole": TrialRequest("several", requests=several),
        f"{SIZE} bytes arrive whole with 2 % loss both ways": TrialRequest("loss", settings=lossy),
    }
    for name, request in requests.items():
        yield pair.check(name, request, pair.trial(request))


def _several_paths(pair: StackPair) -> Iterator[Check]:
    """Where both ends have several paths at once, each path carries a part of a file."""
    if not all(MULTIPATH in stack.options for stack in (pair.client, pair.server)):
        return
    www_file(pair.folder / "www", _LARGER)
    yield _both_paths(
        pair,
        f"{_LARGER} bytes arrive whole over both paths of {_SEVERAL_PATHS}, {pair.title}",
        TrialRequest("paths", scenario=_SEVERAL_PATHS, requests=(f"/{_LARGER}",)),
        "does the client open each when its handshake is complete",
    )


def _migration(pair: StackPair) -> Iterator[Check]:
    """A client that can migrates from a path before that ends, and the file arrives."""
    if MIGRATE not in pair.client.options or not pair.server.follows_paths:
        return
    www_file(pair.folder / "www", _LARGER)
    options = {MIGRATE: _BEFORE_ITS_END}
    yield _both_paths(
        pair,
        f"{_LARGER} bytes arrive whole with {MIGRATE}={_BEFORE_ITS_END} over {_ENDING}, {pair.title}",
        TrialRequest("migration", scenario=_ENDING, requests=(f"/{_LARGER}",), client_options=options),
        "does the client migrate at that time, and does the server answer to where it is then",
    )


def _both_paths(pair: StackPair, name: str, request: TrialRequest, question: str) -> Check:
    """Whether a file arrives whole of which each path carries a part."""
    result = pair.trial(request)
    if result["outcome"] != "ok":
        return pair.check(name, request, result)
    shares = {path["name"]: path["forward_share"] or 0.0 for path in result["paths"]}
    told = ", ".join(f"{path} had {share:.0%}" for path, share in shares.items())
    return Check(
        name,
        min(shares.values()) >= _LEAST_SHARE,
        f"of the bytes to the client {told}",
        f"does READY say that paths are known, {question}, and do datagrams have the number of their path "
        "(endpoints/contract/paths.md)?",
    )


def _refused_paths(pair: StackPair) -> Iterator[Check]:
    """Paths that the server must not serve: the file beside them arrives, and the trial ends by itself."""
    absent = pair.folder / "www" / "absent"
    outside = www_file(pair.folder, 2000)
    absent.write_bytes(outside.read_bytes())
    request = TrialRequest("absent", requests=(f"/{SMALLER[0]}", "/absent"), aside=absent)
    yield _refusal(pair, "a file that is absent", request)
    yield _leading_out(pair, (f"/{SMALLER[0]}", f"/../{outside.name}"))


def _leading_out(pair: StackPair, requests: tuple[str, ...]) -> Check:
    name = "a path that leads out of www"
    for client in (pair.client, catalogue.discover().get(_UNCHECKED)):
        if client is None or client.missing("virtual-time") or not set(client.alpn) & set(pair.server.alpn):
            continue
        request = TrialRequest(f"outside-{client.name}", requests=requests)
        other = replace(pair, client=client)
        check = _refusal(other, name, request)
        if other.culprit(request) != "client":
            return check
    return Check(f"{name} is refused", None, "no client at hand asks for such a path")


def _refusal(pair: StackPair, name: str, request: TrialRequest) -> Check:
    result, path = pair.trial(request), request.requests[-1]
    beside = ", and what is asked for beside it arrives" if request.requests[1:] else ""
    name = f"{name} is refused{beside}, {pair.title}"
    if result["outcome"] == "missing_file" and f"{path}: " in result["detail"]:
        return Check(name, True)
    if result["outcome"] == "ok":
        return Check(name, False, f"{path} was served", f"{_REFUSES} (endpoints/CONTRACT.md)")
    return pair.failed(
        name,
        request,
        result,
        f"{_REFUSES} and goes on; the client takes that for the end of this request "
        "alone, and is done when all have ended (endpoints/CONTRACT.md)",
    )


def _repetition(pair: StackPair, first: Mapping[str, Any]) -> Check:
    name = "the same seed gives the same packets, another seed others"
    if not (pair.client.deterministic and pair.server.deterministic):
        return Check(name, None, "stack.toml says deterministic = false")
    results = (first, pair.trial(TrialRequest("again")), pair.trial(TrialRequest("other", seed=2)))
    hashes = [result.get("packet_log_hash") for result in results]
    same, differ = hashes[0] == hashes[1], hashes[0] != hashes[2]
    detail = "" if same and differ else "two runs differ" if not same else "the seed changes nothing"
    return Check(
        name,
        same and differ,
        detail,
        "draw all randomness from HELLO's seed: connection IDs, TLS randoms and key shares, reset keys, "
        "hash maps (Repeatability in endpoints/CONTRACT.md)",
    )


def _pipes_alone(pair: StackPair, first: Mapping[str, Any]) -> Check:
    """Whether a coordinator that offers no shared memory gets the same."""
    name = f"{SIZE} bytes arrive whole without shared memory, {pair.title}"
    request = TrialRequest("pipes", shared_memory=False)
    result = pair.trial(request)
    if result["outcome"] != "ok":
        return pair.check(name, request, result)
    if not (pair.client.deterministic and pair.server.deterministic):
        return Check(name, True)
    same = result["packet_log_hash"] == first["packet_log_hash"]
    return Check(
        f"{name}, in the same packets",
        same,
        "" if same else "the packets differ",
        "where the body of a message is may change nothing (endpoints/contract/shared-memory.md)",
    )


def _logs(pair: StackPair) -> Iterator[Check]:
    request = TrialRequest("logs", logs=True)
    result = pair.trial(request)
    name, hint = (
        "TLS secrets are written when they are asked for",
        "write the NSS key log to HELLO's `keylog` before BYE; a trace is decrypted with it",
    )
    if result["outcome"] == "ok" and not misses_packets(result):
        yield Check(name, True)
    else:
        yield pair.failed(name, request, result, hint)
    for role, stack in (("client", pair.client), ("server", pair.server)):
        if "qlog" not in stack.logs:
            continue
        folder = pair.left(request) / "qlog" / role
        found = folder.is_dir() and any(file.stat().st_size for file in folder.iterdir())
        yield Check(
            f"{role}: qlog is written when it is asked for",
            found,
            "" if found else "HELLO's `qlog` folder is empty after BYE",
            "write qlog files into the folder HELLO's `qlog` before BYE",
        )
