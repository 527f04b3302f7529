"""`bentpipe scenarios rain`."""

from __future__ import annotations

from pathlib import Path

import click

from bentpipe.cli import made_file
from bentpipe.errors import UsageError
from bentpipe.weather import rain as weather
from bentpipe.weather.earth_station import EarthStation


@click.command(short_help="Synthesise attenuation by rain.")
@click.option(
    "--station", metavar="LAT,LON", required=True, help="The earth station, degrees north and east."
)
@click.option("--satellite", type=float, metavar="LON", required=True, help="Longitude of the satellite.")
@click.option(
    "--frequency",
    type=click.FloatRange(4, 55),
    metavar="GHZ",
    default=19.7,
    show_default=True,
    help="Carrier frequency in GHz.",
)
@click.option(
    "--peak",
    type=click.FloatRange(min=0, min_open=True),
    metavar="DB",
    default=8.0,
    show_default=True,
    help="The highest attenuation of the event.",
)
@click.option(
    "--seconds",
    type=click.IntRange(10, 3600),
    default=120,
    show_default=True,
    help="How long the event's part is.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Other seeds give other events.")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="FILE.csv",
    help="Where the values go.",
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
def rain(
    station: str,
    satellite: float,
    frequency: float,
    peak: float,
    seconds: int,
    seed: int,
    out: Path,
    force: bool,
) -> None:
    """Synthesise attenuation by rain over time, as an attenuation of a carrier reads it.

    Weather of up to a year is synthesised for the place, after ITU-R P.1853 with the climate of P.618 and
    P.837, and the part of it in which rain sets in most quickly is taken. A scenario reads it as
    attenuation = { trace = "rain.csv" }. It needs an extra: pip install 'bentpipe[rain]'.

    \b
    Example:
      bentpipe scenarios rain --station 48.1,11.6 --satellite 13 --peak 8 -o rain.csv
    """  # fmt: skip
    made_file.check(out, force)
    place = EarthStation(*_coordinates(station), satellite)
    if (elevation := place.elevation()) < 5:
        raise UsageError(
            f"--satellite {satellite:g}: it stands at {elevation:.1f}° there; the model begins at 5°",
            "write the longitude of a satellite that is nearer",
        )
    series = weather.event(weather.Rain(place, frequency, peak, seconds, seed))
    rows = [f"{second},{value:.2f}" for second, value in enumerate(series)]
    made_file.write(out, "\n".join(["time_s,value_db", *rows]) + "\n")
    click.echo(
        f"{out}: {seconds} s, {series[0]:.1f} dB at first, {series.max():.1f} dB at most; "
        f"{frequency:g} GHz, elevation {elevation:.1f}°"
    )


def _coordinates(text: str) -> tuple[float, float]:
    """Latitude and longitude in degrees."""
    try:
        latitude, longitude = map(float, text.split(","))
    except ValueError:
        raise UsageError(
            f"--station {text}: not a place", "write degrees north and east: 48.1,11.6"
        ) from None
    if not (abs(latitude) <= 90 and abs(longitude) <= 180):
        raise UsageError(
            f"--station {text}: not on Earth", "latitudes reach to 90, longitudes to 180 degrees"
        )
    return latitude, longitude
