"""Rain on the way to a satellite: the geometry, the choice of an event, and what the command says."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from bentpipe.cli.commands import cli
from bentpipe.errors import UsageError
from bentpipe.plan import scenarios
from bentpipe.weather import rain
from bentpipe.weather.earth_station import EarthStation

HAS_CLIMATE = importlib.util.find_spec("itur") is not None
MUNICH = EarthStation(48.1, 11.6, 13.0)
SCENARIO = """
title = "rain"
source = "a test"
timeout = "60 s"
satellite.return.delay = "250 ms"
satellite.forward.delay = "250 ms"
satellite.forward.rate.standard = "dvb-s2"
satellite.forward.rate.symbol_rate = "1 MBd"
satellite.forward.rate.es_n0 = "12 dB"
satellite.forward.rate.attenuation = { trace = "a.csv" }
"""


def wanted(peak: float, seconds: int, seed: int = 1) -> rain.Rain:
    return rain.Rain(MUNICH, 19.7, peak, seconds, seed)


def test_a_satellite_stands_where_spherical_trigonometry_has_it() -> None:
    assert EarthStation(0, 13, 13).elevation() == pytest.approx(90)
    # Of the cosine rule: the horizon is 81.3 degrees from the point below a geostationary satellite.
    assert EarthStation(81.3, 13, 13).elevation() == pytest.approx(0, abs=0.05)
    assert MUNICH.elevation() == pytest.approx(34.74, abs=0.01)


def test_the_event_is_the_part_that_rises_most() -> None:
    series = np.zeros(1000)
    series[100:110] = 9.0  # at once: it rises most
    series[500:600] = np.linspace(3, 9, 100)
    series[800:810] = 20.0  # too much
    found = rain._steepest(series, wanted(8, 50))
    assert found is not None and found[0] == 0 and found.max() == 9
    assert rain._steepest(series, wanted(30, 50)) is None
    assert rain._steepest(series, wanted(8, 2000)) is None


def test_a_scenario_reads_what_is_written(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("time_s,value_db\n0,2.5\n1,3.25\n")
    (tmp_path / "a.toml").write_text(SCENARIO)
    found = scenarios.resolve(str(tmp_path / "a.toml"))
    assert found.courses["satellite.forward.es_n0"]["least"] == 8.75
    (tmp_path / "a.csv").write_text("time_s,value_db\n0,2.5\n1,nan\n")
    with pytest.raises(scenarios.ScenarioError, match="line 3: 1,nan: a line is a time in seconds"):
        scenarios.resolve(str(tmp_path / "a.toml"))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--station", "here", "--satellite", "13"], "--station here: not a place"),
        (["--station", "98,11", "--satellite", "13"], "not on Earth"),
        (["--station", "48.1,11.6", "--satellite", "-120"], "the model begins at 5°"),
    ],
)
def test_what_cannot_be_is_said(arguments: list[str], says: str, tmp_path: Path) -> None:
    out = tmp_path / "rain.csv"
    done = CliRunner().invoke(cli, ["scenarios", "rain", *arguments, "-o", str(out)])
    assert done.exit_code != 0 and not out.exists()
    assert says in str(done.exception) + done.output


def test_a_file_that_is_there_stays_without_force(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rain, "event", lambda wanted: np.array([0.25, 8.0]))
    out = tmp_path / "rain.csv"
    out.write_text("mine")
    arguments = ["scenarios", "rain", "--station", "48.1,11.6", "--satellite", "13", "-o"]
    done = CliRunner().invoke(cli, [*arguments, str(out)])
    assert done.exit_code != 0 and "rain.csv: is there already" in str(done.exception)
    assert out.read_text() == "mine"
    done = CliRunner().invoke(cli, [*arguments, str(out), "--force"])
    assert done.exit_code == 0 and out.read_text() == "time_s,value_db\n0,0.25\n1,8.00\n"
    for where, says in (
        (tmp_path / "no" / "a.csv", "there is no folder"),
        ("/proc/a.csv", "cannot be written"),
    ):
        done = CliRunner().invoke(cli, [*arguments, str(where)])
        assert isinstance(done.exception, UsageError)
        assert f"-o: {where}: {says}" in str(done.exception)


@pytest.mark.skipif(HAS_CLIMATE, reason="the climate of ITU-R is installed")
def test_without_the_climate_it_says_what_to_install(tmp_path: Path) -> None:
    out = tmp_path / "rain.csv"
    arguments = ["scenarios", "rain", "--station", "48.1,11.6", "--satellite", "13", "-o", str(out)]
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code != 0 and not out.exists()
    assert "itur" in str(done.exception) + done.output


@pytest.mark.skipif(not HAS_CLIMATE, reason="itur is not installed: pip install 'bentpipe[rain]'")
def test_an_event_has_its_peak_and_its_seed() -> None:
    event = rain.event(wanted(5, 60))
    assert len(event) == 60 and 5 <= event.max() <= 6
    assert (rain.event(wanted(5, 60)) == event).all()
    assert (rain.event(wanted(5, 60, seed=2)) != event).any()


@pytest.mark.skipif(not HAS_CLIMATE, reason="itur is not installed: pip install 'bentpipe[rain]'")
def test_years_of_rain_have_the_distribution_of_the_recommendation() -> None:
    """The published example of P.618-13 for 33.94°, 18.43° at sea level, 46.36° and 29 GHz: attenuations that
    are exceeded in so many percent of a year. P.1853-1 fits a log-normal distribution to them, and takes off
    what it has at the end of rain.
    """
    from itur.models.itu837 import rainfall_probability

    published = {1: 1.96063611, 0.1: 7.808323, 0.01: 21.24862}
    for percent, attenuation in published.items():
        assert _exceeded(percent) == pytest.approx(attenuation, rel=0.005)  # its rain is read from a map
    station = EarthStation(33.94, 18.43, 0.0)
    assert station.elevation() == pytest.approx(46.36, abs=0.5)  # the example's Earth is no sphere
    offset = _exceeded(float(rainfall_probability(33.94, 18.43).value))
    assert offset == pytest.approx(1.7, abs=0.05)
    parts = [(seed, part) for seed in (1, 2, 3) for part in range(6)]
    years = np.concatenate(
        [rain._series(rain.Rain(station, 29.0, 5, 60, seed), part) for seed, part in parts]
    )
    # Rain is correlated over hours: three years have some two hundred showers.
    for percent in (1, 0.5, 0.3, 0.1):
        share = 100 * float((years > _exceeded(percent) - offset).mean())
        assert share == pytest.approx(percent, rel=0.2)


def _exceeded(percent: float) -> float:
    """What P.618 has for the example: the attenuation in dB that is exceeded in a share of a year."""
    from itur.models.itu618 import rain_attenuation

    return float(rain_attenuation(33.94, 18.43, 29.0, 46.35969261, hs=0.0, p=percent, tau=0).value)
