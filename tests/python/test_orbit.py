"""Where satellites are, which of them serves a terminal, and the scenario that comes of it."""

from __future__ import annotations

import datetime as dt
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from bentpipe import paths
from bentpipe.cli.commands import cli
from bentpipe.errors import BentpipeError, UsageError
from bentpipe.orbit.ground import EQUATOR_KM, Place
from bentpipe.orbit.passage import Change, Clock, highest, longest, passage
from bentpipe.orbit.routes import SatelliteGrid, is_clear
from bentpipe.orbit.shell import GRAVITY_KM3_S2, ROTATION_RAD_S, Shell
from bentpipe.orbit.sky import SPEED_KM_S, Masks, Route, Sky
from bentpipe.orbit.tle import Elements, sidereal_rad
from bentpipe.plan import scenarios

VANGUARD = (
    "1 00005U 58002B   00179.78495062  .00000023  00000-0  28098-4 0  4753",
    "2 00005  34.2682 348.7242 1859667 331.7664  19.3264 10.82419157413667",
)
# Minutes after the epoch, and the position in km: Vallado et al. 2006, satellite 00005, WGS72.
PUBLISHED = (
    (0, (7022.46529266, -1400.08296755, 0.03995155)),
    (360, (-7154.03120202, -3783.17682504, -3536.19412294)),
    (1440, (-938.55923943, -6268.18748831, -4294.02924751)),
    (2880, (-8650.73082219, -1914.93811525, -3007.03603443)),
)
ZERO = Place(0, 0)
STARLINK = ["--shell", "1584/72/550km/53deg"]
GERMANY = ["--terminal", "49.6,11.0", "--gateway", "50.3,8.5"]


def elements(tmp_path: Path, *lines: str) -> Path:
    file = tmp_path / "some.tle"
    file.write_text("\n".join(lines) + "\n")
    return file


def orbit(*arguments: object) -> str:
    """What `bentpipe scenarios orbit` prints; its error is raised."""
    done = CliRunner().invoke(cli, ["scenarios", "orbit", *map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


def test_sgp4_gives_the_published_positions(tmp_path: Path) -> None:
    found = Elements.read(elements(tmp_path, "VANGUARD 1", *VANGUARD), None)
    assert found.names == ["VANGUARD 1"]
    for minutes, expected in PUBLISHED:
        days = (found.begin - dt.datetime(2000, 1, 1, 12, tzinfo=dt.UTC)) / dt.timedelta(days=1)
        angle = sidereal_rad(days + minutes / 1440)
        x, y, z = found.positions(minutes * 60)[0]
        turned_back = (
            x * math.cos(angle) - y * math.sin(angle),
            x * math.sin(angle) + y * math.cos(angle),
            z,
        )
        # The epoch has microseconds here, in which the satellite moves by some millimetres.
        assert turned_back == pytest.approx(expected, abs=1e-4)


def test_sidereal_time_is_that_of_the_textbook() -> None:
    # Vallado, Fundamentals of Astrodynamics, example 3-5: 1992-08-20, 12:14 UT1.
    at = dt.datetime(1992, 8, 20, 12, 14) - dt.datetime(2000, 1, 1, 12)
    assert math.degrees(sidereal_rad(at / dt.timedelta(days=1))) == pytest.approx(152.578787886, abs=1e-6)


def test_places_are_on_the_ellipsoid() -> None:
    assert Place(0, 90).position() == pytest.approx([0, EQUATOR_KM, 0], abs=1e-9)
    assert Place(90, 0, 1).position() == pytest.approx([0, 0, 6356.752314 + 1], abs=1e-6)
    # 45 degrees north: x = N cos, z = N (1 - e2) sin, with N = 6388.838290 km.
    assert Place(45, 0).position() == pytest.approx([4517.590879, 0, 4487.348409], abs=1e-5)


def by_spherical_trigonometry(place: Place, latitude: float, longitude: float, radius: float) -> float:
    """The elevation of a satellite above a sphere through the place, from the angle at the Earth's centre."""
    below = float(np.linalg.norm(place.position()))
    here, there = math.asin(place.position()[2] / below), math.radians(latitude)
    across = math.radians(longitude - place.longitude)
    cosine = math.sin(here) * math.sin(there) + math.cos(here) * math.cos(there) * math.cos(across)
    return math.degrees(math.atan2(cosine - below / radius, math.sqrt(1 - cosine * cosine)))


def test_elevations_are_those_of_spherical_trigonometry() -> None:
    random = np.random.default_rng(5)
    radius = EQUATOR_KM + 550
    for _ in range(500):
        place = Place(random.uniform(-85, 85), random.uniform(-180, 180))
        latitude = float(np.clip(place.latitude + random.uniform(-9, 9), -90, 90))
        longitude = place.longitude + random.uniform(-9, 9)
        satellite = radius * Place(latitude, longitude).up()
        expected = by_spherical_trigonometry(place, latitude, longitude, radius)
        # The vertical of the ellipsoid is off by 0.193 degrees at most.
        assert float(place.elevations(satellite)) == pytest.approx(expected, abs=0.194)
    # At the equator both are the same.
    for longitude in (1.0, 5.0, 12.0):
        satellite = radius * Place(0, longitude).up()
        expected = by_spherical_trigonometry(ZERO, 0, longitude, radius)
        assert float(ZERO.elevations(satellite)) == pytest.approx(expected, abs=1e-9)


def unturned(shell: Shell, seconds: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Positions in axes that do not turn with the Earth."""
    angle = ROTATION_RAD_S * seconds
    turn = np.array(
        [[math.cos(angle), math.sin(angle), 0], [-math.sin(angle), math.cos(angle), 0], [0, 0, 1]]
    )
    return np.asarray(shell.positions(seconds) @ turn)


@pytest.mark.parametrize("text,phasing", [("1584/72/550km/53deg", 39), ("648/18/1200km/87.9deg/star", 0)])
def test_a_shell_is_walkers(text: str, phasing: int) -> None:
    shell = Shell.parse(text, phasing)
    radius = EQUATOR_KM + shell.altitude_km
    period = 2 * math.pi * math.sqrt(radius**3 / GRAVITY_KM3_S2)
    start = unturned(shell, 0)
    assert start.shape == (shell.total, 3)
    for seconds in (0, 1234.5):
        positions = unturned(shell, seconds)
        assert np.linalg.norm(positions, axis=1) == pytest.approx(radius)
        planes = positions.reshape(shell.planes, shell.per_plane, 3)
        # Neighbours in a plane are 360 degrees / S apart, and all planes have the inclination.
        cosines = np.sum(planes * np.roll(planes, -1, axis=1), axis=2) / radius**2
        assert cosines == pytest.approx(math.cos(2 * math.pi / shell.per_plane))
        normals = np.cross(planes[:, 0], planes[:, 1])
        normals /= np.linalg.norm(normals, axis=1)[:, None]
        assert np.degrees(np.arccos(normals[:, 2])) == pytest.approx(shell.inclination)
        nodes = np.degrees(np.unwrap(np.arctan2(normals[:, 0], -normals[:, 1])))
        assert np.diff(nodes) == pytest.approx((180 if shell.is_star else 360) / shell.planes)
    assert unturned(shell, period) == pytest.approx(start, abs=1e-3)
    # The first satellite of the second plane is ahead by F * 360 / T: so high above the equator.
    ahead = math.radians(phasing * 360 / shell.total)
    height = radius * math.sin(ahead) * math.sin(math.radians(shell.inclination))
    assert start[shell.per_plane][2] == pytest.approx(height)


def test_the_grid_gives_each_satellite_four_neighbours_that_are_near() -> None:
    shell = Shell.parse("1584/72/550km/53deg", 39)
    links = {frozenset(link) for link in shell.links}
    assert len(links) == len(shell.links) == 2 * shell.total
    counts = np.bincount(np.array(shell.links).ravel(), minlength=shell.total)
    assert set(counts) == {4}
    positions = shell.positions(0)
    # All links to the next plane are equal in phase, also from the last to the first.
    across = shell.links[shell.total :]
    phases = {
        round(float(np.linalg.norm(shell._nodes_and_phases[1][[b]] - shell._nodes_and_phases[1][[a]])), 9)
        for a, b in across[: shell.per_plane * (shell.planes - 1)]
    }
    assert phases == {round(2 * math.pi * 39 / 1584, 9)}
    lengths = [float(np.linalg.norm(positions[a] - positions[b])) for a, b in across]
    seam = lengths[-shell.per_plane :]
    assert max(seam) <= max(lengths[: -shell.per_plane]) + 1
    star = Shell.parse("648/18/1200km/87.9deg/star")
    assert len(star.links) == 648 + 17 * 36


def sky(shell: str, gateway: Place = ZERO, mask: float = 25, isl: bool = False) -> Sky:
    return Sky(Shell.parse(shell), ZERO, [gateway], Masks(mask, mask), isl)


def test_a_satellite_over_the_equator_serves_as_long_as_computed_by_hand() -> None:
    radius = EQUATOR_KM + 1000
    # It stands above 25 degrees while the angle at the Earth's centre is below 13.42 degrees.
    angle = math.acos(EQUATOR_KM / radius * math.cos(math.radians(25))) - math.radians(25)
    speed = math.sqrt(GRAVITY_KM3_S2 / radius**3) - ROTATION_RAD_S
    sets, rises = angle / speed, (math.pi - angle) / speed
    assert (round(sets, 1), round(rises, 1)) == (253.7, 3148.9)
    found = passage(sky("2/1/1000km/0deg"), highest, Clock(15_000, 15_000, 1000, 3_900_000))
    # It is lost at the first sample after 253.7 s; the other serves from the first instant after 3148.9 s.
    assert found.changes == (Change(254_000, 3_150_000), Change(3_657_000, 3_900_000))
    first = found.samples[0]
    assert (first.at_ns, first.satellite, first.in_view) == (0, 0, 1)
    assert first.delay_ns == round(2 * 1000 / SPEED_KM_S * 1e9) == 6_671_282
    last = next(sample for before, sample in pairwise(found.samples) if sample.satellite == 1)
    assert last.at_ns == 3_150_000_000_000
    # The cosine rule, at the instant of rising.
    away = math.pi - speed * 3150
    slant = math.sqrt(EQUATOR_KM**2 + radius**2 - 2 * EQUATOR_KM * radius * math.cos(away))
    assert last.delay_ns == pytest.approx(2 * slant / SPEED_KM_S * 1e9, abs=1)


def test_a_choice_by_elevation_and_one_by_visibility() -> None:
    # With a mask of 5 degrees satellites are seen up to 25.6 degrees away: those at 0, 20 and -20 degrees.
    many = sky("18/1/1000km/0deg", mask=5)
    in_view, elevation = many.seen(0, 0)
    assert in_view == 3 and elevation == pytest.approx(90)
    assert many.highest(0) == Route((0,), 0)
    assert many.longest(0, 1) == Route((17,), 0)


def test_the_longest_visibility_gives_fewer_handovers_than_the_highest_elevation() -> None:
    """In the geometry of `leo-walker`."""
    shell = Shell.parse("1584/72/550km/53deg", 39)
    walker = Sky(shell, Place(49.6, 11.0), [Place(50.3, 8.5)], Masks(25, 25), False)
    clock = Clock(15_000, 15_000, 1000, 600_000)
    by_height = passage(walker, highest, clock)
    kept = passage(walker, longest(1), clock)
    assert not by_height.unserved and not kept.unserved
    assert len(kept.changes) < len(by_height.changes) / 2
    # None is left that would serve up to the next instant.
    for change in kept.changes:
        before = [one for one in kept.samples if one.at_ns < change.at_ms * 10**6][-1]
        left = Route((before.satellite,), 0)
        assert not all(walker.serves(change.at_ms / 1000 + at, left) for at in range(15))


def test_how_long_a_satellite_can_be_used_is_by_its_nearest_gateway() -> None:
    """Satellites go east. Number 17 begins 20 degrees in the west: the terminal sees it for longest. But of
    the two gateways that in the west is nearer to it, and soon loses it.
    """
    gateways = [Place(0, -38), Place(0, 3)]
    both = Sky(Shell.parse("18/1/1000km/0deg"), ZERO, gateways, Masks(5, 5), False)
    assert both.serves(0, Route((17,), 0)) and not both.serves(150, Route((17,), 0))
    assert both.serves(450, Route((0,), 1)) and both.serves(800, Route((17,), 1))
    assert both.longest(0, 1) == Route((0,), 1)


def test_a_choice_by_visibility_is_asked_for_and_noted(tmp_path: Path) -> None:
    counts = []
    for choice in ("highest", "longest"):
        file = tmp_path / f"{choice}.toml"
        orbit(*STARLINK, *GERMANY, "--minutes", 5, "--choose", choice, "-o", file)
        found = scenarios.resolve(str(file)).scenario
        assert ("It is kept while it serves" in found["notes"]) == (choice == "longest")
        counts.append(len(found["satellite"]["forward"]["handovers"]["times"]))
    assert 0 < counts[1] < counts[0]


def test_the_nearest_gateway_that_sees_the_satellite_serves() -> None:
    gateways = [Place(0, 40), Place(0, 9), Place(0, 8)]
    several = Sky(Shell.parse("18/1/1000km/0deg"), ZERO, gateways, Masks(25, 25), False)
    assert several.highest(0) == Route((0,), 2)


def test_links_between_satellites_lead_the_shortest_way() -> None:
    ring = sky("12/1/1000km/0deg", Place(0, 90), isl=True)
    way = ring.highest(0)
    assert way == Route((0, 1, 2, 3), 0)
    link = 2 * (EQUATOR_KM + 1000) * math.sin(math.radians(15))
    assert ring.delay_s(0, way) == pytest.approx((1000 + 3 * link + 1000) / SPEED_KM_S)
    assert sky("12/1/1000km/0deg", Place(0, 90)).highest(0) is None


def test_a_link_does_not_lead_through_the_earth() -> None:
    positions = Shell.parse("4/1/1000km/0deg").positions(0)
    assert not is_clear(positions[0], positions[2])
    assert not is_clear(positions[0], positions[1])
    near = Shell.parse("12/1/1000km/0deg").positions(0)
    assert is_clear(near[0], near[1])
    assert SatelliteGrid([(0, 1)]).shortest(positions, 0, {1: 0.0}) is None


def test_a_scenario_is_made_shown_and_repeats(tmp_path: Path) -> None:
    file = tmp_path / "orbit.toml"
    told = orbit(*STARLINK, *GERMANY, "--minutes", 3, "-o", file)
    first = file.read_bytes(), file.with_suffix(".csv").read_bytes()
    orbit(*STARLINK, *GERMANY, "--minutes", 3, "-o", file, "--force")
    assert first == (file.read_bytes(), file.with_suffix(".csv").read_bytes())
    found = scenarios.resolve(str(file))
    forward, back = (found.scenario["satellite"][direction] for direction in ("forward", "return"))
    assert (forward["rate"], back["rate"]) == ("100 Mbit/s", "20 Mbit/s")
    assert forward["delay"] == back["delay"] and forward["handovers"] == back["handovers"]
    times = [float(one["at"].removesuffix(" s")) for one in forward["handovers"]["times"]]
    assert f"{len(times)} handovers" in told
    assert times and all(time % 15 == 0 for time in times)
    delays = [float(row.split(",")[1]) for row in file.with_suffix(".csv").read_text().splitlines()[1:]]
    # Twice the altitude is the least; a satellite at 25 degrees is 1124 km away, a gateway up to 200 km more.
    assert min(delays) > 2 * 550 / SPEED_KM_S * 1000 and max(delays) < 2400 / SPEED_KM_S * 1000
    shown = CliRunner().invoke(cli, ["scenarios", "show", str(file)]).output
    assert "handovers" in shown and "satellite.forward.delay, over 180 s" in shown
    with pytest.raises(UsageError, match="180 s: nothing is known after it"):
        scenarios.resolve(str(file), ["timeout=181s"])


def test_what_comes_after_a_scenario(tmp_path: Path) -> None:
    file = tmp_path / "orbit.toml"
    orbit(*STARLINK, *GERMANY, "--minutes", 1, "--then", "repeat", "-o", file)
    forward = scenarios.resolve(str(file), ["timeout=1000s"]).scenario["satellite"]["forward"]
    assert forward["delay"]["period"] == forward["handovers"]["period"] == "60 s"
    assert forward["handovers"]["times"][0]["at"] == "0 ms"
    orbit(*STARLINK, *GERMANY, "--minutes", 1, "--then", "hold", "-o", file, "--force")
    forward = scenarios.resolve(str(file), ["timeout=1000s"]).scenario["satellite"]["forward"]
    assert "period" not in forward["delay"] and "ends" not in forward["delay"]


def test_times_without_a_satellite_are_named(tmp_path: Path) -> None:
    file = tmp_path / "gaps.toml"
    place = ["--terminal", "0,0", "--gateway", "0,0"]
    told = orbit("--shell", "2/1/1000km/0deg", *place, "--minutes", 65, "-o", file)
    assert "warning: The terminal is not served from 254 to 3150 s, 3657 to 3900 s." in told
    forward = scenarios.resolve(str(file)).scenario["satellite"]["forward"]
    gaps = [(one["at"], one["gap"]) for one in forward["handovers"]["times"]]
    assert gaps == [("254 s", "2896.08 s"), ("3657 s", "243 s")]
    assert "not served from 254 to 3150 s" in scenarios.resolve(str(file)).scenario["notes"]


def test_a_terminal_that_is_never_served_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "never.toml"
    with pytest.raises(BentpipeError, match="the terminal is never served in 600 s"):
        orbit(*STARLINK, "--terminal", "85,0", "--gateway", "50,8", "-o", file)
    assert not file.exists()


def test_elements_give_a_scenario(tmp_path: Path) -> None:
    tle = elements(tmp_path, *VANGUARD)
    file = tmp_path / "one.toml"
    at = Elements.read(tle, None).positions(0)[0]
    latitude = math.degrees(math.asin(at[2] / np.linalg.norm(at)))
    below = f"{latitude:.1f},{math.degrees(math.atan2(at[1], at[0])):.1f}"
    orbit("--tle", tle, f"--terminal={below}", f"--gateway={below}", "--minutes", 1, "-o", file)
    row = file.with_suffix(".csv").read_text().splitlines()[1].split(",")
    assert row[0] == "0" and row[2] == "00005"
    height = float(np.linalg.norm(at)) - float(np.linalg.norm(Place.parse(below, "").position()))
    assert float(row[1]) == pytest.approx(2 * height / SPEED_KM_S * 1000, rel=1e-3)


@pytest.mark.parametrize(
    "lines,message",
    [
        ((VANGUARD[0][:-1] + "4", VANGUARD[1]), "line 1: the checksum is 4, the digits of the line give 3"),
        (("A", VANGUARD[0], VANGUARD[1][:-2]), "line 3: 67 characters where a line has 69"),
        ((VANGUARD[0],), "the last line 2 is missing"),
        ((VANGUARD[0], VANGUARD[0]), "line 2: a line 1 after a line 1"),
        ((VANGUARD[0], "A", VANGUARD[1]), "line 2: after a line 1 its line 2 is missing"),
        (("a name",), "no elements"),
    ],
)
def test_elements_that_are_broken_are_refused(tmp_path: Path, lines: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Elements.read(elements(tmp_path, *lines), None)


@pytest.mark.parametrize(
    "arguments,message",
    [
        (["--shell", "1584/72/550/53"], '--shell: "1584/72/550/53" is no shell'),
        (["--shell", "1584/71/550km/53deg"], "1584 satellites do not fill 71 planes evenly"),
        (["--shell", "1584/72/5km/53deg"], "no orbit stays at 5 km"),
        (["--shell", "1584/72/550km/253deg"], "an inclination is from 0deg to 180deg"),
        (["--shell", "1584/72/5.5.0km/53deg"], "is no shell"),
        ([*STARLINK, "--phasing", "72"], "--phasing: 72 is not from 0 to 71"),
        ([*STARLINK, "--phasing", "1", "--phasing", "2"], "--phasing: 2 of them for 1 shells"),
        ([*STARLINK, "--terminal", "91,0"], "--terminal: 91,0: a latitude of 91 is not from -90 to 90"),
        ([*STARLINK, "--gateway", "0,181"], "a longitude of 181"),
        ([*STARLINK, "--gateway", "north"], '--gateway: "north" is no place'),
        ([*STARLINK, "--gateway", "1,nan"], "is no place"),
        ([*STARLINK, "--terminal", "1,2,300"], "an altitude of 300 km"),
        ([*STARLINK, "--elevation", "95"], "--elevation 95: no satellite stands so"),
        ([*STARLINK, "--gateway-elevation", "nan"], "--gateway-elevation nan"),
        ([*STARLINK, "--minutes", "nan"], "--minutes nan"),
        ([*STARLINK, "--rate", "100Mbit/s"], "is no pair of rates"),
        ([*STARLINK, "--gap", "15s"], "--gap 15s: as long as from one handover to the next"),
        ([*STARLINK, "--handover-every", "0s"], "--handover-every: 0s is no time"),
        ([*STARLINK, "--queue", "7"], "queue: 7: not a queue size"),
        ([*STARLINK, "--rate", "100/20Mbps"], "rate"),
        ([*STARLINK, "--start", "2026-01-01T00:00:00Z"], "--start: shells have no date"),
        ([], "write --shell or --tle"),
        (["--tle", "no.tle"], "--tle: cannot read no.tle"),
    ],
)
def test_bad_input_is_refused(tmp_path: Path, arguments: list[str], message: str) -> None:
    file = tmp_path / "orbit.toml"
    with pytest.raises(UsageError) as refused:
        orbit(*GERMANY, "--minutes", 1, *arguments, "-o", file)
    assert message in str(refused.value)
    assert not file.exists() and not file.with_suffix(".csv").exists()


@pytest.mark.parametrize("there", [".toml", ".csv"])
def test_files_that_are_there_stay(tmp_path: Path, there: str) -> None:
    file, kept = tmp_path / "orbit.toml", tmp_path / f"orbit{there}"
    kept.write_text("mine")
    with pytest.raises(UsageError, match=f"orbit{there}: is there already"):
        orbit(*STARLINK, *GERMANY, "--minutes", 1, "-o", file)
    with pytest.raises(UsageError, match=r"^orbit\.toml: .*queue: nonsense: not a queue size"):
        orbit(*STARLINK, *GERMANY, "--minutes", 1, "--queue", "nonsense", "-o", file, "--force")
    assert list(tmp_path.iterdir()) == [kept] and kept.read_text() == "mine"
    orbit(*STARLINK, *GERMANY, "--minutes", 1, "-o", file, "--force")
    assert scenarios.resolve(str(file)).scenario["satellite"]["forward"]["rate"] == "100 Mbit/s"
    assert sorted(tmp_path.iterdir()) == [tmp_path / "orbit.csv", file]


def test_where_nothing_can_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"-o: /proc/orbit\.toml: cannot be written: "):
        orbit(*STARLINK, *GERMANY, "--minutes", 1, "-o", "/proc/orbit.toml")
    with pytest.raises(UsageError, match="there is no folder "):
        orbit(*STARLINK, *GERMANY, "--minutes", 1, "-o", tmp_path / "nowhere" / "orbit.toml")
    (tmp_path / "orbit.csv").mkdir()
    with pytest.raises(UsageError, match=r"orbit\.csv is a folder"):
        orbit(*STARLINK, *GERMANY, "--minutes", 1, "-o", tmp_path / "orbit.toml", "--force")


@pytest.mark.parametrize("name", ["leo-walker", "oneweb-like"])
def test_scenarios_from_geometry_are_what_the_command_makes(tmp_path: Path, name: str) -> None:
    """Up to a nanosecond: other processors may round otherwise."""
    file, made = paths.scenarios() / f"{name}.toml", tmp_path / f"{name}.toml"
    command = file.read_text().partition("Made by: bentpipe scenarios orbit ")[2].partition(" -o ")[0]
    orbit(*command.split(), "-o", made)
    kept, again = (
        [row.split(",") for row in one.with_suffix(".csv").read_text().splitlines()[1:]]
        for one in (file, made)
    )
    assert [row[0] for row in kept] == [row[0] for row in again]
    assert [float(row[1]) for row in kept] == pytest.approx([float(row[1]) for row in again], abs=2e-6)
    assert [row[2] for row in kept] == [row[2] for row in again]
    _, kept_links = file.read_text().split("[satellite.forward]")
    _, made_links = made.read_text().split("[satellite.forward]")
    assert kept_links == made_links
