"""What cannot be is not applicable: it has no trial, and its reason is said once."""

from collections.abc import Sequence
from typing import Any

import fake_run
import pytest

from bentpipe import workload
from bentpipe.errors import UsageError
from bentpipe.plan import flows
from bentpipe.plan.applicability import not_applicable
from bentpipe.plan.campaign import Plan, PlanVariants
from bentpipe.stacks import catalogue

KNOWN = catalogue.discover()
KOSEK = {
    "clients": ("noq", "linux"),
    "servers": ("noq", "linux"),
    "pairs": "self",
    "scenarios": ("sat", "geo-tum"),
    "workloads": tuple(f"page:kosek:{http}" for http in ("h1", "h2", "h3")),
    "treatments": ("direct", "quic-pep", "tcp-pep"),
}


def plan_of(**values: Any) -> tuple[Plan, PlanVariants]:
    plan = Plan(name="mine", **{"scenarios": ("sat",), "iterations": 2, **values})
    roles = {"client": list(plan.clients), "server": list(plan.servers)}
    for flow in flows.every(plan.parsed_workloads):
        for role, label in flow.variants.items():
            roles[role].append(label)
    clients, servers = ({one: catalogue.variant(one, KNOWN) for one in labels} for labels in roles.values())
    return plan, PlanVariants(clients, servers, {})


def said(plan: Plan, variants: PlanVariants) -> Sequence[tuple[str, int, int]]:
    return [(one.reason, one.combinations, one.of) for one in not_applicable(plan, variants)]


def test_reasons_of_one_kind_are_one_line_and_iterations_do_not_count() -> None:
    assert said(*plan_of(**KOSEK)) == [
        ("noq does not speak http/1.1, h2", 12, 36),
        ("linux does not speak h3", 6, 36),
        ("quic-pep with http/1.1 (TCP), h2 (TCP)", 4, 36),
        ("tcp-pep with h3 (QUIC)", 2, 36),
    ]


def test_what_can_be_keeps_its_seed_and_its_order() -> None:
    plan, variants = plan_of(**KOSEK)
    made = fake_run.manifest("sat", "geo-tum", not_applicable=not_applicable(plan, variants))
    made.options = plan
    trials = made.trials()
    assert len(trials) == (36 - 24) * 2
    every = {one.id: one.seed for one in plan.trials()}
    assert [one.id for one in trials] == [one for one in every if one in {trial.id for trial in trials}]
    assert all(every[one.id] == one.seed for one in trials)
    recorded = {plan.trials()[-1].id}
    assert len(made.trials(recorded)) == len(trials) + 1, "what an older version recorded stays"


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"clients": ["noq"], "servers": ["linux"]}, "no common protocol for transfer: noq → linux"),
        ({"clients": ["noq"], "treatments": ["tcp-pep"]}, "tcp-pep with hq-interop (QUIC)"),
        ({"clients": ["s2n-quic"], "workloads": ["zerortt:2x1kB"]}, "s2n-quic does not list zerortt"),
        ({"clients": ["quinn:migrate=2s"], "servers": ["x-net"]}, "no client can migrate with x-net"),
        ({"clients": ["aioquic"], "testbed": "remote"}, "aioquic cannot be brought to another host: it runs"),
        (
            {
                "clients": ["linux"],
                "servers": ["linux:sack=off"],
                "flows": ["server=linux"],
                "testbed": "emu",
            },
            "flows with different settings of TCP at the server: linux:sack=off + linux",
        ),
    ],
)
def test_a_plan_of_which_nothing_can_be_is_an_error(values: dict[str, Any], why: str) -> None:
    keys = {key: value if isinstance(value, str) else tuple(value) for key, value in values.items()}
    keys["workloads"] = workload.canonical(keys.get("workloads", ("transfer:1kB",)), "test")
    with pytest.raises(UsageError, match=r"^not applicable: ") as error:
        not_applicable(*plan_of(**{"servers": keys["clients"], **keys}))
    assert why in str(error.value) and "bentpipe stacks show" in str(error.value.hint)


def test_of_many_pairs_some_are_named() -> None:
    quic = ("noq", "quinn", "quic-go", "aioquic", "ngtcp2")
    ((reason, combinations, of),) = said(*plan_of(clients=(*quic, "linux"), servers=quic))
    assert (combinations, of) == (5, 30)
    assert reason == "no common protocol for transfer: linux → noq, linux → quinn, linux → quic-go and 2 more"


def test_what_is_in_a_tunnel_no_proxy_ends() -> None:
    ends = {"clients": ("linux",), "servers": ("linux",), "testbed": "emu"}
    assert said(*plan_of(**ends, treatments=("vpn=server:kind=wireguard+quic-pep=gateway",))) == []
