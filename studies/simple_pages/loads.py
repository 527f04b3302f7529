"""Cells by what they loaded, over which protocol, where packets were lost and through what."""

from __future__ import annotations

from bentpipe import labels, workload
from bentpipe.analysis.cells import Cell
from bentpipe.plan.treatments import DIRECT
from bentpipe.study.markdown import literal
from bentpipe.workload.http import TITLES
from bentpipe.workload.page.visit import PageVisit

PROXIES = ", proxies"
_KERNELS = 131072  # bytes: the middle value of Linux's tcp_rmem
_GOOD = "forward.loss.p_bad_given_good"


def has_bbr(one: Cell) -> bool:
    """Whether it is of QUIC with a BBR of its library."""
    return is_quic(one) and labels.variant(one.key.server).options.get("cc", "").startswith("bbr")


def page_name(one: Cell) -> str:
    """The page; "" of another workload."""
    found = workload.known(one.key.workload)
    return found.name if isinstance(found, PageVisit) else ""


def is_quic(one: Cell) -> bool:
    """Whether it was loaded over HTTP/3."""
    found = workload.known(one.key.workload)
    return isinstance(found, PageVisit) and found.http == "h3"


def losses(one: Cell) -> str:
    """How packets are lost: not at all, on the satellite, or between terminal and client."""
    values = one.key.scenario_label.values
    for key, words in ((_GOOD, "on the satellite"), (f"access.{_GOOD}", "beside it")):
        if values.get(key, "0%") != "0%":
            return words
    return "none"


def sender_name(one: Cell) -> str:
    """`HTTP/2, linux:cc=bbr, proxies`, and the receivers' first window where it is not the kernel's."""
    found = workload.known(one.key.workload)
    assert isinstance(found, PageVisit)
    widened = "" if first_buffer(one) is None else f", first window of {first_window(one)}"
    return f"{TITLES[found.http]}, {literal(one.key.server)}{proxies(one)}{widened}"


def first_buffer(one: Cell) -> int | None:
    """The bytes with which the client's receiver begins, `rmem`; None: as the kernel has it."""
    text = labels.variant(one.key.client).options.get("rmem")
    return None if text is None else int(text)


def first_window(one: Cell) -> str:
    """What a receiver offers at first: half of its buffer, which is 128 KiB unless it is set."""
    kib = (first_buffer(one) or _KERNELS) // 2048
    return f"{kib // 1024} MiB" if kib % 1024 == 0 else f"{kib} KiB"


def proxies(one: Cell) -> str:
    """`, proxies` or `, proxies with a pool`; "" without them."""
    if one.key.treatment == DIRECT:
        return ""
    return f"{PROXIES} with a pool" if "pool=" in one.key.treatment else PROXIES
