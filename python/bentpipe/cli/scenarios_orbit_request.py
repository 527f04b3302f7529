"""The request of `bentpipe scenarios orbit`, and its files."""

from __future__ import annotations

import datetime as dt
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from bentpipe.cli import made_file
from bentpipe.cli.layout import folded
from bentpipe.errors import UsageError
from bentpipe.orbit import scenario_file
from bentpipe.orbit.constellation import Constellation
from bentpipe.orbit.ground import Place
from bentpipe.orbit.passage import Choice, Clock, Passage, highest, longest, passage
from bentpipe.orbit.scenario_file import ChosenLink
from bentpipe.orbit.shell import Shell, Shells
from bentpipe.orbit.sky import Masks, Sky
from bentpipe.plan import scenarios as catalogue
from bentpipe.workload import units

_TOLD = 8  # times that are printed one by one
_LONGEST_MIN = 1440


def make(output: Path, force: bool, given: dict[str, Any]) -> None:
    """Make the scenario that the options ask for, and check it as trials do."""
    if output.suffix != ".toml":
        raise UsageError(f"-o {output}: a scenario is a .toml file", "write a name like orbit.toml")
    trace = output.with_suffix(".csv")
    for file in (output, trace):
        made_file.check(file, force)
    if trace.is_dir():
        raise UsageError(f"-o {output}: {trace} is a folder", "name another file")
    clock = _clock(given)
    terminal = Place.parse(given["terminal"], "--terminal")
    gateways = [Place.parse(text, "--gateway") for text in given["gateways"]]
    masks = Masks(_mask(given, "elevation"), _mask(given, "gateway_elevation"))
    constellation, more = _constellation(given)
    chosen = _chosen(given, clock)
    sky = Sky(constellation, terminal, gateways, masks, given["isl"])
    found = passage(sky, _choice(given["choose"], clock), clock)
    notes = [*_notes(given, constellation, terminal, gateways), *more, *_unserved(found)]
    title = _title(given, constellation)
    scenario = scenario_file.scenario_of(found, trace.name, chosen, clock.length_ms, title, notes)
    texts = {trace: scenario_file.trace_of(found, constellation.names, chosen.added_ns), output: scenario}
    try:
        _write(texts, output)
    except OSError as error:
        raise made_file.not_written(output, error) from error
    click.echo(
        f"{output}, with {trace.name}: {len(found.changes)} handovers, {_range(found, chosen)} one way"
    )
    for line in _unserved(found):
        click.echo(folded(line, "warning: ", "  "))


def _write(texts: dict[Path, str], output: Path) -> None:
    """Write the files, and then check the scenario, in a folder of their own; then move them into place, so
    that an error leaves what was there.
    """
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=".bentpipe-") as folder:
        for file, text in texts.items():
            Path(folder, file.name).write_text(text)
        try:
            catalogue.resolve(str(Path(folder, output.name)))
        except catalogue.ScenarioError as error:
            said = str(error).replace(f"{folder}{os.sep}", "")
            raise UsageError(said, error.hint) from error
        for file in texts:
            Path(folder, file.name).replace(file)


def _clock(given: dict[str, Any]) -> Clock:
    every = _positive(given["handover_every"], "--handover-every")
    first = every if given["first"] is None else units.milliseconds(given["first"], "--first")
    if not 0 < given["minutes"] <= _LONGEST_MIN:
        raise UsageError(f"--minutes {given['minutes']:g}: not from 0 to a day", "write --minutes 10")
    length = round(given["minutes"] * 60_000)
    return Clock(first, every, _positive(given["sample"], "--sample"), length)


def _positive(text: str, where: str) -> int:
    time_ms = units.milliseconds(text, where)
    if time_ms == 0:
        raise UsageError(f"{where}: {text} is no time", "write a time above 0, as in 15s")
    return time_ms


def _mask(given: dict[str, Any], name: str) -> float:
    degrees = given[name]
    if not 0 <= degrees < 90:
        option = f"--{name.replace('_', '-')}"
        raise UsageError(
            f"{option} {degrees:g}: no satellite stands so; a mask is from 0 to less than 90 degrees",
            f"write {option} 25",
        )
    return float(degrees)


def _constellation(given: dict[str, Any]) -> tuple[Constellation, list[str]]:
    """The satellites, and what there is to say of them."""
    shells, phasings = given["shells"], given["phasings"]
    if bool(shells) == (given["elements"] is not None):
        raise UsageError("write --shell or --tle", "as in --shell 1584/72/550km/53deg")
    if shells:
        if given["start"] is not None:
            raise UsageError("--start: shells have no date", "leave it out, or use --tle")
        if len(phasings) not in (0, len(shells)):
            raise UsageError(
                f"--phasing: {len(phasings)} of them for {len(shells)} shells", "write one for each --shell"
            )
        each = zip(shells, phasings or [0] * len(shells), strict=True)
        return Shells(tuple(Shell.parse(text, phasing) for text, phasing in each)), []
    # Only those who have elements wait for SGP4 to be loaded.
    from bentpipe.orbit.tle import Elements

    start = given["start"]
    elements = Elements.read(given["elements"], start and start.replace(tzinfo=dt.UTC))
    notes = [f"The elements are up to {elements.oldest_days:.1f} days older or newer than the beginning."]
    if failing := elements.failing():
        notes.append(f"SGP4 has no position of {len(failing)} satellites, as of {failing[0]}.")
    return elements, notes


def _chosen(given: dict[str, Any], clock: Clock) -> ChosenLink:
    forward, slash, back = given["rate"].partition("/")
    unit = back.lstrip("0123456789. ")
    if not slash or not unit or not back.removesuffix(unit).strip():
        raise UsageError(
            f'--rate: "{given["rate"]}" is no pair of rates',
            "write FORWARD/RETURN, as in --rate 100/20Mbit/s",
        )
    gap = units.milliseconds(given["gap"], "--gap")
    if gap >= clock.every_ms:
        raise UsageError(
            f"--gap {given['gap']}: as long as from one handover to the next, {given['handover_every']}",
            "write --gap 80ms",
        )
    added = units.milliseconds(given["processing"], "--processing") * 1_000_000
    rates = f"{forward.strip()} {unit}", f"{back.removesuffix(unit).strip()} {unit}"
    return ChosenLink(*rates, given["queue"], gap, given["in_flight"], added, given["then"])


def _choice(name: str, clock: Clock) -> Choice:
    return highest if name == "highest" else longest(clock.sample_ms / 1000)


def _title(given: dict[str, Any], constellation: Constellation) -> str:
    way = "links between satellites" if given["isl"] else "bent pipe"
    return f"LEO, {way}, {given['rate']}, over {constellation}"


def _notes(
    given: dict[str, Any], constellation: Constellation, terminal: Place, gateways: Sequence[Place]
) -> list[str]:
    after = {
        "end": "No trial may last longer.",
        "repeat": "Then it begins again.",
        "hold": "Then the last delay holds, and nothing is handed over.",
    }
    kept = "" if given["choose"] == "highest" else " It is kept while it serves up to the next such time."
    return [
        f"Constellation: {constellation}. Terminal {terminal}, gateways {'; '.join(map(str, gateways))}, "
        f"elevations of {given['elevation']:g} and {given['gateway_elevation']:g} degrees or more.",
        f"The satellite is the one of {given['choose']} "
        f"{'elevation' if given['choose'] == 'highest' else 'visibility'}, chosen at 0"
        f", at {given['first'] or given['handover_every']} and every {given['handover_every']} from then on; "
        f"a handover is where the path changes.{kept}",
        f"The delay is that of light in a straight line, and {given['processing']} more; "
        f"it is the same both ways. {after[given['then']]}",
        "Geometry gives delays and handovers. Rates, queue, gap and what becomes of packets in flight do not "
        "come from it: they were chosen.",
    ]


def _unserved(found: Passage) -> list[str]:
    times = [f"{one.at_ms / 1000:g} to {one.until_ms / 1000:g} s" for one in found.unserved]
    if not times:
        return []
    more = f" and {len(times) - _TOLD} more" if len(times) > _TOLD else ""
    return [f"The terminal is not served from {', '.join(times[:_TOLD])}{more}."]


def _range(found: Passage, chosen: ChosenLink) -> str:
    delays = [(sample.delay_ns + chosen.added_ns) / 1e6 for sample in found.samples]
    return f"{min(delays):.2f} to {max(delays):.2f} ms"
