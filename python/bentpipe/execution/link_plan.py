"""Plans over real links: their scenarios are links of a file, and not everything can be done over them."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from bentpipe.errors import UsageError
from bentpipe.plan import flows
from bentpipe.plan.campaign import Plan
from bentpipe.plan.scenarios import Scenario
from bentpipe.plan.treatments import DIRECT
from bentpipe.remote.links import Links
from bentpipe.testbed import REMOTE, TESTBEDS

_FILES = ("transfer", "handshake", "longrtt", "multiplexing", "resumption", "zerortt", "upload")


def over_links(plan: Plan, are_named: bool) -> Plan:
    """The plan, its scenarios being links; all of the file unless some `are_named`. UsageError for what
    cannot be done over a real link.
    """
    elsewhere = TESTBEDS[plan.testbed].is_elsewhere
    if plan.link and not elsewhere:
        raise UsageError("--link: its hosts are for one testbed", f"add --testbed {REMOTE.name}")
    if not elsewhere:
        return plan
    if not plan.link:
        raise UsageError(
            f"--testbed {REMOTE.name}: there is no link",
            "name a file of links with --link, as examples/links.toml",
        )
    links = Links(Path(plan.link))
    if not are_named:
        plan = replace(plan, scenarios=tuple(links.names))
    for name in plan.scenarios:
        links.named(name)
    _check(plan, links)
    return plan


def scenarios_of(plan: Plan) -> list[Scenario]:
    """The scenarios of a plan's links, by their nominal properties."""
    links = Links(Path(plan.link))
    return [links.scenario(name) for name in plan.scenarios]


def _check(plan: Plan, links: Links) -> None:
    if plan.set or plan.sweep:
        raise UsageError(
            "--set: nothing of a real link can be set", f"what is known of it is in {links.file}"
        )
    if between := [str(one) for one in plan.parsed_treatments if str(one) != DIRECT]:
        raise UsageError(
            f"--treatment {between[0]}: over a real link nothing stands between the ends",
            f"leave it out, or add --testbed emu in place of {REMOTE.name}",
        )
    workloads = plan.parsed_workloads
    if any(flows.of(one) for one in workloads):
        raise UsageError("--flow: over a real link there is one flow", "leave it out")
    for one in workloads:
        if one.testcase not in _FILES or one.duration_ms is not None or one.alpn is not None:
            raise UsageError(
                f"--workload {one.alone}: over a real link there are files alone",
                f"one of {', '.join(_FILES)}",
            )
    for name in plan.scenarios:
        weather = links.named(name).weather
        if weather and weather.file is not None and not links.path(weather.file).is_file():
            raise UsageError(
                f"{links.file}: links.{name}.weather.file: there is no file {links.path(weather.file)}",
                "write the weather there, or leave out the key",
            )
        server = links.named(name).server
        if (server.ipv4 if plan.ip == 4 else server.ipv6) is None:
            raise UsageError(
                f"{links.file}: links.{name}.server has no ipv{plan.ip}",
                f"add it, or leave out --ip {plan.ip}",
            )
