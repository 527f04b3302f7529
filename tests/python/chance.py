"""How properties draw their examples: the same ones each time in `make test`, new ones in `make soak`."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

SOAK = "BENTPIPE_SOAK_SEED"  # set by `make soak`: the seed of a search for what no example has shown yet
MORE = 20  # how many times as many examples that search tries

# How long an example takes says how busy the machine is, and what is kept of a failure could make the next
# run another test: its example is printed, and belongs into an @example.
_COMMON = settings(deadline=None, database=None, print_blob=True)
settings.register_profile("bentpipe", _COMMON, derandomize=True)
settings.register_profile(
    "soak",
    _COMMON,
    derandomize=False,
    max_examples=MORE * _COMMON.max_examples,
    suppress_health_check=[HealthCheck.too_slow],
)


def soak_seed() -> int | None:
    """The seed of the soak that this is, if it is one."""
    text = os.environ.get(SOAK)
    return int(text) if text else None


def load_profile() -> None:
    settings.load_profile("bentpipe" if soak_seed() is None else "soak")


def examples(count: int) -> settings:
    """For a property whose examples are dear: so many of them, and in a soak as many more as elsewhere."""
    return settings(max_examples=count if soak_seed() is None else MORE * count)
