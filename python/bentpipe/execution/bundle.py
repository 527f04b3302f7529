"""Trial bundles: everything that a trial depends on, without a path of this machine, and the job that is made
of one here.

Who executes a bundle has the same version of Bentpipe, finds its stacks by their names and by the hash of
what they were built from, with the same versions of packages, and makes its files (`schemas/bundle.toml`).
Not compared are proxies of the user's own.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path

from bentpipe import __version__
from bentpipe.errors import BentpipeError, one_of
from bentpipe.execution.jobs import LocalFlow, LocalTrial
from bentpipe.plan.treatments import PlacedMiddlebox, Treatment, Tunnel
from bentpipe.plan.trial import IP_VERSIONS
from bentpipe.schema.bundle import Bundle, BundleFlow, BundleProxy, BundleStack, BundleTunnel
from bentpipe.stacks import installed, middleboxes
from bentpipe.stacks.model import Stack, Variant
from bentpipe.testbed import TESTBEDS
from bentpipe.workload import TESTCASES

_THE_SAME = "use the version of Bentpipe that wrote the bundle, with the same packages"


def of_stack(variant: Variant, version: str | None) -> BundleStack:
    """A variant as bundles name it."""
    built = variant.stack.build is not None
    return BundleStack(
        name=variant.label,
        stack=variant.stack.name,
        options=dict(variant.options),
        version=version,
        inputs_sha256=variant.stack.entry.inputs_sha256 if built else None,
        packages=_packages(variant.stack),
    )


def _packages(stack: Stack) -> dict[str, str]:
    """The packages that a stack runs with, and their versions."""
    found = installed.packages_of(stack.packages)
    return {name: version for name, version in found.items() if version is not None}


def of_treatment(treatment: Treatment) -> list[BundleProxy]:
    """Proxies as bundles name them."""
    return [
        BundleProxy(kind=treatment.kind, place=one.place, name=str(one), options=dict(one.options))
        for one in treatment.proxies
    ]


def of_tunnel(tunnel: Tunnel | None) -> BundleTunnel | None:
    """A tunnel as bundles name it."""
    if tunnel is None:
        return None
    mtu = tunnel.mtu_bytes or middleboxes.tunnels()[tunnel.kind].tunnel_mtu_bytes
    return BundleTunnel(kind=tunnel.kind, to=tunnel.to, mtu_bytes=mtu)


def resolve(bundle: Bundle, known: Mapping[str, Stack], www: Path, folder: Path) -> LocalTrial:
    """The trial of a bundle on this machine, with its files in `www` and what it leaves in `folder`.
    BentpipeError if one of its stacks is not here, or was built from different sources.
    """
    if bundle.bentpipe not in ("", __version__):  # a bundle of format 1 does not say
        raise BentpipeError(
            f"the bundle is of Bentpipe {bundle.bentpipe}, and this is {__version__}", _THE_SAME
        )
    if bundle.testbed not in TESTBEDS:
        raise BentpipeError(
            f'testbed: "{bundle.testbed}" is not valid', f"this machine has {', '.join(TESTBEDS)}"
        )
    testbed = TESTBEDS[bundle.testbed]
    _check(bundle)
    return LocalTrial(
        scenario=bundle.scenario,
        flows=tuple(_flow(flow, known, testbed.mode) for flow in bundle.flows),
        www=www,
        seed=bundle.seed,
        folder=folder,
        trace=bundle.trace,
        qlog=bundle.qlog,
        silence_s=bundle.silence_s,
        treatment=_treatment(bundle),
        testbed=testbed,
        ip=bundle.ip,
    )


def _check(bundle: Bundle) -> None:
    """BentpipeError if it has values that no run writes: it may come from anywhere."""
    for name, size in bundle.files.items():
        if Path(name).name != name or name in ("", ".", "..") or "\0" in name:
            raise BentpipeError(f'files: "{name}" is not valid', "a name without a folder, as in 1MB")
        if size < 0:
            raise BentpipeError(f"files: {name}: {size} is not valid", "a number of bytes")
    for flow in bundle.flows:
        if flow.testcase not in TESTCASES:
            hint = one_of(flow.testcase, TESTCASES, "test cases")
            raise BentpipeError(f'flows: testcase: "{flow.testcase}" is not valid', hint)
    if bundle.ip not in IP_VERSIONS:
        raise BentpipeError(f"ip: {bundle.ip} is not valid", "4 or 6")
    if not re.fullmatch("[0-9a-f]{16}", bundle.seed):
        raise BentpipeError(f'seed: "{bundle.seed}" is not valid', "16 hexadecimal digits")
    if bundle.silence_s < 1:
        raise BentpipeError(f"silence_s: {bundle.silence_s} is not valid", "a number of seconds, at least 1")


def _treatment(bundle: Bundle) -> Treatment:
    return dataclasses.replace(_proxies(bundle), tunnel=_tunnel(bundle))


def _tunnel(bundle: Bundle) -> Tunnel | None:
    said = bundle.tunnel
    if said is None:
        return None
    known = middleboxes.tunnels()
    if said.kind not in known:
        raise BentpipeError(f'tunnel: kind: "{said.kind}" is not valid', one_of(said.kind, known, "one of"))
    if said.to not in (ends := known[said.kind].far_ends):
        raise BentpipeError(f'tunnel: to: "{said.to}" is not valid', one_of(said.to, ends, "one of"))
    if said.mtu_bytes not in middleboxes.MTUS:
        least, most = middleboxes.MTUS[0], middleboxes.MTUS[-1]
        raise BentpipeError(f"tunnel: mtu_bytes: {said.mtu_bytes} is not valid", f"{least} to {most}")
    return Tunnel(said.kind, said.to, said.mtu_bytes)


def _proxies(bundle: Bundle) -> Treatment:
    if not bundle.proxies:
        return Treatment()
    kinds = {one.kind for one in bundle.proxies}
    if len(kinds) > 1 or not kinds <= middleboxes.chains().keys():
        here = ", ".join(middleboxes.chains())
        raise BentpipeError(
            f"proxies: {', '.join(sorted(kinds))}: not one kind that is here", f"here are {here}"
        )
    chain = tuple(PlacedMiddlebox(one.place, one.options) for one in bundle.proxies)
    return Treatment(chain, kinds.pop())


def _flow(flow: BundleFlow, known: Mapping[str, Stack], mode: str) -> LocalFlow:
    return LocalFlow(
        testcase=flow.testcase,
        requests=tuple(flow.requests),
        client=_variant(flow.client, known, mode),
        server=_variant(flow.server, known, mode),
        start_ns=flow.start_ns,
        duration_ns=flow.duration_ns,
        alpn=flow.alpn,
        page=tuple(flow.page),
        live=flow.live,
        frames=flow.frames,
        middlebox=flow.middlebox,
        versions=(flow.client.version, flow.server.version),
    )


def _variant(wanted: BundleStack, known: Mapping[str, Stack], mode: str) -> Variant:
    stack = known.get(wanted.stack)
    if stack is None:
        raise BentpipeError(f"there is no stack {wanted.stack} here", "name its folder with --stacks")
    here = stack.entry.inputs_sha256 if stack.build is not None else None
    if here != wanted.inputs_sha256:
        raise BentpipeError(
            f"{wanted.stack} is not the one of the bundle: its sources have the hash {here}, there "
            f"{wanted.inputs_sha256}",
            _THE_SAME,
        )
    packages = _packages(stack)
    if other := [name for name, version in wanted.packages.items() if packages.get(name) != version]:
        raise BentpipeError(
            f"{wanted.stack} is not the one of the bundle: its package {other[0]} is of version "
            f"{packages.get(other[0])}, there {wanted.packages[other[0]]}",
            _THE_SAME,
        )
    if why := stack.missing(mode):
        raise BentpipeError(why, stack.how_to_install)
    return Variant(wanted.name, stack, wanted.options)
