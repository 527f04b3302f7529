"""Labels, taken apart and put together."""

from __future__ import annotations

import pytest

from bentpipe import labels


def test_a_variant_is_a_stack_with_options() -> None:
    found = labels.variant("quinn:cc=bbr:iw=100")
    assert (found.stack, dict(found.options)) == ("quinn", {"cc": "bbr", "iw": "100"})
    assert labels.variant("noq").options == {}
    assert labels.variant("noq") is labels.variant("noq"), "taken apart once"


@pytest.mark.parametrize(
    ("text", "settings", "queue", "without"),
    [
        ("sat", {}, "", "sat"),
        ("sat,forward.queue=1BDP", {"forward.queue": "1BDP"}, "1 BDP", "sat"),
        (
            "sat,forward.queue=25packets,forward.loss=a,b",
            {"forward.queue": "25packets", "forward.loss": "a,b"},
            "25 packets",
            "sat,forward.loss=a,b",
        ),
        (
            'sat,forward.queue={size="1BDP",aqm="codel",ecn="off"},forward.loss=1%',
            {"forward.queue": '{size="1BDP",aqm="codel",ecn="off"}', "forward.loss": "1%"},
            "1 BDP codel ecn=off",
            "sat,forward.loss=1%",
        ),
    ],
)
def test_a_scenario_has_settings(text: str, settings: dict[str, str], queue: str, without: str) -> None:
    found = labels.scenario(text)
    assert found.name == "sat" and dict(found.values) == settings and str(found) == text
    assert (found.queue, str(found.without_queue)) == (queue, without)


def test_a_treatment_is_a_kind_with_a_chain() -> None:
    assert labels.treatment("direct") == labels.TreatmentLabel("direct", "")
    assert labels.treatment("quic-pep terminal:iw=9,gateway").chain == "terminal:iw=9,gateway"
