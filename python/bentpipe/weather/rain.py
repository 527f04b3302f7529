"""Attenuation by rain over time, after ITU-R P.1853-1, with the climate of P.618 and P.837.

The climate's maps and formulas are those of the package `itur`; it brings half a gigabyte of other packages
along, so that it is an extra: `pip install 'bentpipe[rain]'`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bentpipe.errors import UsageError
from bentpipe.weather.earth_station import EarthStation

Series = npt.NDArray[np.float64]  # dB, a value for each second

# Samples that the synthesis discards, so that its filter has settled (P.1853-1, annex 1, step D6).
_SETTLING = 200_000
_DAY = 24 * 3600
_DAYS = 60  # are synthesised at a time, to find an event in


@dataclass(frozen=True)
class Rain:
    """The input of a synthesis: a path to a satellite, and the event that is looked for in its weather."""

    station: EarthStation
    frequency_ghz: float
    peak_db: float  # of the event
    seconds: int  # that the event's part lasts
    seed: int


def event(rain: Rain) -> Series:
    """The attenuation in each second of the part of some months of weather in which it rises most, to a
    peak of `peak_db` and no more than a fifth above.

    UsageError if the package is not installed, or if months of this weather have no such event.
    """
    highest = 0.0
    for months in range(6):
        series = _series(rain, months)
        highest = max(highest, float(series.max()))
        if (found := _steepest(series, rain)) is not None:
            return found
    raise UsageError(
        f"a year of rain at this place has no {rain.seconds} s that rise to {rain.peak_db:g} dB; the highest "
        f"attenuation in it is {highest:.1f} dB",
        "write a lower --peak, a higher --frequency, or another --seed",
    )


def _series(rain: Rain, months: int) -> Series:
    try:
        from itur.models import itu1853
    except ImportError:
        raise UsageError(
            "the climate of ITU-R is not installed: the package itur", "pip install 'bentpipe[rain]'"
        ) from None
    seconds = _DAYS * _DAY
    noise = np.random.default_rng([rain.seed, months]).normal(size=seconds + _SETTLING)
    station = rain.station
    series = itu1853.rain_attenuation_synthesis(
        station.latitude,
        station.longitude,
        rain.frequency_ghz,
        station.elevation(),
        0.0,  # km above the sea
        seconds,
        n=noise,
    )
    return np.asarray(series[_SETTLING:], dtype=float)


def _steepest(series: Series, rain: Rain) -> Series | None:
    """The part that rises most from its beginning to its peak, among those with such a peak."""
    count = len(series) - rain.seconds + 1
    if count <= 0:
        return None
    peaks = np.lib.stride_tricks.sliding_window_view(series, rain.seconds).max(axis=1)
    rises = np.where((peaks >= rain.peak_db) & (peaks <= 1.2 * rain.peak_db), peaks - series[:count], -1.0)
    begin = int(rises.argmax())
    return series[begin : begin + rain.seconds] if rises[begin] > 0 else None
