"""`bentpipe scenarios orbit`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


@click.command(short_help="Make a scenario from geometry.")
@click.option(
    "--shell",
    "shells",
    multiple=True,
    metavar="TOTAL/PLANES/ALTITUDE/INCLINATION",
    help="A Walker-delta shell, as 1584/72/550km/53deg; with /star behind it planes are spread over half of "
    "the equator. Can be repeated.",
)
@click.option(
    "--phasing",
    "phasings",
    multiple=True,
    type=int,
    metavar="F",
    help="Walker's phasing factor of a shell, 0 unless given; one for each --shell, in their order.",
)
@click.option(
    "--tle",
    "elements",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Two-line elements in place of a shell; SGP4 gives the positions.",
)
@click.option(
    "--start",
    type=click.DateTime(["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S"]),
    help="With --tle, when the scenario begins, in UTC.  [default: the latest epoch in the file]",
)
@click.option("--terminal", required=True, metavar="LAT,LON[,KM]", help="Where the terminal is, in degrees.")
@click.option(
    "--gateway", "gateways", required=True, multiple=True, metavar="LAT,LON[,KM]", help="Where a gateway is."
)
@click.option(
    "--elevation", default=25.0, show_default=True, metavar="DEG", help="The least elevation at the terminal."
)
@click.option(
    "--gateway-elevation", default=25.0, show_default=True, metavar="DEG", help="The same at a gateway."
)
@click.option(
    "--isl",
    is_flag=True,
    help="Links between satellites, in the plane and to the next planes: the shortest way.",
)
@click.option("--minutes", default=10.0, show_default=True, help="How long the scenario lasts.")
@click.option(
    "--then",
    type=click.Choice(["end", "repeat", "hold"]),
    default="end",
    show_default=True,
    help="What comes after it: a longer timeout is refused, it begins again, or the last delay holds.",
)
@click.option(
    "--handover-every", default="15s", show_default=True, metavar="TIME", help="When a satellite is chosen."
)
@click.option("--first", metavar="TIME", help="The first such instant.  [default: as --handover-every]")
@click.option(
    "--choose",
    type=click.Choice(["highest", "longest"]),
    default="highest",
    show_default=True,
    help="The satellite that stands highest; or the one that can be used for longest, kept while it serves.",
)
@click.option(
    "--gap", default="80ms", show_default=True, metavar="TIME", help="A handover stops all for so long."
)
@click.option(
    "--in-flight",
    type=click.Choice(["lost", "delayed", "forwarded"]),
    default="lost",
    show_default=True,
    help="What becomes of packets that are under way at a handover.",
)
@click.option("--processing", default="0ms", show_default=True, metavar="TIME", help="Added to each delay.")
@click.option("--sample", default="1s", show_default=True, metavar="TIME", help="From one delay to the next.")
@click.option(
    "--rate", default="100/20Mbit/s", show_default=True, metavar="FORWARD/RETURN", help="The rates."
)
@click.option("--queue", default="100 ms", show_default=True, help="The queue in each direction.")
@click.option(
    "-o", "--out", required=True, type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.toml"
)
@click.option("--force", is_flag=True, help="Overwrite FILE.toml and FILE.csv.")
def orbit(out: Path, force: bool, **given: Any) -> None:
    """Make a scenario from geometry: a terminal, gateways, and satellites in low orbits.

    FILE.toml is the scenario; FILE.csv beside it has the delay over time, with the satellite, its elevation
    and how many are in view. Trials read them; no trial computes an orbit.

    \b
    Examples:
      bentpipe scenarios orbit --shell 1584/72/550km/53deg \\
        --terminal 49.6,11.0 --gateway 50.3,8.5 --minutes 10 -o orbit.toml
      bentpipe scenarios orbit --shell 1584/72/550km/53deg --phasing 39 --isl \\
        --terminal 49.6,11.0 --gateway 40.7,-74.0 -o atlantic.toml
      bentpipe scenarios orbit --tle leo.tle --terminal 49.6,11.0 --gateway 50.3,8.5 -o leo.toml
      bentpipe scenarios show orbit.toml
    """
    # Only those who make orbits wait for NumPy to be loaded.
    from bentpipe.cli.scenarios_orbit_request import make

    make(out, force, given)
