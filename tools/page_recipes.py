"""Makes the pages in `pages/`, each from its recipe and seed.

    tools/page_recipes.py [--check]

What a source says of a page is kept: how many resources and bytes there are, of which types. What it does not
say is drawn: sizes, from a lognormal distribution, and what is found where. How that is drawn follows what
browsers do with documents in general, and no page in particular.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bentpipe.workload.page import Page, Resource, ResourceType, toml

FOLDER = Path(__file__).resolve().parents[1] / "pages"
SPREAD = 1.0  # standard deviation of the logarithm of sizes of one type
SUFFIX: dict[ResourceType, str] = {
    "document": ".html", "stylesheet": ".css", "script": ".js", "font": ".woff2", "image": ".webp",
    "media": ".mp4", "fetch": ".json", "other": ".bin",
}  # fmt: skip
DRAWN = (
    "Sizes within a type and what is found where are drawn from a seed: stylesheets and a third of the "
    "scripts in the head, the rest along the document; fonts and a tenth of the images by stylesheets, a "
    "fifth of the scripts and whatever else there is by scripts."
)
ALMANAC = "HTTP Archive, Web Almanac 2024, chapter Page Weight (October 2024, desktop)"


@dataclass(frozen=True)
class Recipe:
    """A source's description of a page: how many resources of each type, and their bytes together."""

    title: str
    source: str
    seed: int
    types: dict[ResourceType, tuple[int, int]]
    notes: str = DRAWN


RECIPES = {
    "kosek": Recipe(
        "75 objects, 880 kB",
        "M. Kosek et al., Proxying QUIC in SATCOM, 2022, section III-C: the ETSI Kepler web reference page",
        20220901,
        {"document": (1, 40_000), "stylesheet": (4, 60_000), "script": (18, 280_000), "font": (2, 60_000),
         "image": (50, 440_000)},
        f"The source states 75 objects and about 880 kB; how many of which type is chosen here. {DRAWN}",
    ),
    "httparchive-median": Recipe(
        "Median page of the web, 71 requests, 2.7 MB",
        ALMANAC,
        20241001,
        {"document": (2, 18_000), "stylesheet": (8, 78_000), "script": (24, 613_000), "font": (4, 131_000),
         "image": (18, 1_054_000), "media": (1, 194_000), "fetch": (14, 564_000)},
        "The source states medians: of requests of each type, of its bytes on home pages, of a video's "
        "bytes, and of requests and bytes of whole pages. What types leave to the whole page counts here "
        f"as what scripts fetch. {DRAWN}",
    ),
    "httparchive-p90": Recipe(
        "90th percentile of the web's pages, 176 requests, 12 MB",
        ALMANAC,
        20241002,
        {"document": (12, 100_000), "stylesheet": (26, 269_000), "script": (57, 1_834_000),
         "font": (11, 360_000), "image": (60, 6_526_000), "media": (1, 2_835_000), "fetch": (9, 100_000)},
        "The source states 90th percentiles: of requests of whole pages and of most types, of bytes of "
        "stylesheets, scripts and images of a page, and of a video's. A page that has all of them at once is "
        "heavier than one in ten. Chosen here: bytes of documents and fonts, and the number of scripts, "
        f"which is what the others leave of 176. {DRAWN}",
    ),
}  # fmt: skip


def drawn(recipe: Recipe) -> Page:
    """The page of a recipe."""
    chance = random.Random(recipe.seed)
    sized = {kind: list(_sizes(chance, *parts)) for kind, parts in recipe.types.items()}
    # The content of frames is smaller than the page that they are in, which has to name all that it leads to.
    sized["document"].sort(reverse=True)
    resources = [Resource("/", "document", sized["document"].pop(0))]
    for kind in ("stylesheet", "script", "font", "image", "media", "document", "fetch", "other"):
        for number, size in enumerate(sized.get(kind, []), start=1):
            path = f"/{kind}{number}{SUFFIX[kind]}"
            initiator, found_after, wait_ms = _found(chance, kind, number / len(sized[kind]), resources)
            resources.append(Resource(path, kind, size, initiator, found_after, wait_ms))
    return Page(recipe.title, recipe.source, tuple(resources), recipe.notes)


def _sizes(chance: random.Random, count: int, total: int) -> Iterator[int]:
    """Sizes that add up to `total`, 200 bytes each at least."""
    shares = [chance.lognormvariate(0, SPREAD) for _ in range(count)]
    left = total - 200 * count
    sizes = [200 + int(left * share / sum(shares)) for share in shares]
    sizes[0] += total - sum(sizes)
    return iter(sizes)


def _found(
    chance: random.Random, kind: ResourceType, place: float, before: list[Resource]
) -> tuple[str, float, int]:
    """The initiator, the share of it, and the wait; `place` says how far down among those of its type."""
    sheets = [one.path for one in before if one.type == "stylesheet"]
    scripts = [one.path for one in before if one.type == "script" and one.initiator == "/"]
    running_ms = chance.randint(5, 50)
    if kind == "stylesheet" or (kind == "script" and place <= 1 / 3):
        return "/", round(0.02 + 0.08 * place, 3), 0
    if sheets and (kind == "font" or (kind == "image" and chance.random() < 0.1)):
        return chance.choice(sheets), 1.0, 0
    if scripts and (kind not in ("script", "font", "image") or (kind == "script" and chance.random() < 0.2)):
        return chance.choice(scripts), 1.0, running_ms
    return "/", round(0.1 + 0.9 * place, 3), 0


def slides() -> Page:
    """70 objects of 30 kB each."""
    images = [
        Resource(f"/image{n}.webp", "image", 30_000, "/", round(0.1 + 0.9 * n / 69, 3)) for n in range(1, 70)
    ]
    return Page(
        "70 objects of 30 kB",
        "J. Deutschmann et al., Protocols, QUIC, and SATCOM, 2nd QUIC and Satellite Open Stakeholder "
        "Meeting, 2021, part 2",
        (Resource("/", "document", 30_000), *images),
        "The source states number and size. Chosen here: one is the document, and the others are images that "
        "it names, evenly along itself.",
    )


def single(letter: str, size: int, shown: str) -> Page:
    """A page of one object."""
    return Page(
        f"One object of {shown}",
        "N. Kuhn et al., QUIC: Opportunities and threats in SATCOM, ASMS 2020, section II-A, target "
        + letter,
        (Resource("/", "document", size),),
        "The source states the size, and fewer than two objects.",
    )


def video() -> Page:
    """A player that asks for one segment after the other."""
    head = [
        Resource("/", "document", 30_000),
        Resource("/player.css", "stylesheet", 40_000, "/", 0.05),
        Resource("/player.js", "script", 500_000, "/", 0.06),
        Resource("/poster.webp", "image", 120_000, "/", 0.5),
        Resource("/manifest.json", "fetch", 4_000, "/player.js", 1.0, 50),
        Resource("/init.mp4", "media", 1_500, "/manifest.json", 1.0, 5),
    ]
    segments = [
        Resource(f"/segment{n}.mp4", "media", 1_000_000, f"/segment{n - 1}.mp4" if n > 1 else "/init.mp4")
        for n in range(1, 9)
    ]
    return Page(
        "A player and 16 s of video at 4 Mbit/s",
        "Chosen here: a player of 500 kB of scripts and eight segments of 2 s, one after the other",
        (*head, *segments),
    )


def api() -> Page:
    """Many small requests: some at once, others one after the other."""
    chance = random.Random(20261124)
    resources = [Resource("/", "document", 5_000), Resource("/app.js", "script", 200_000, "/", 0.1)]
    for number in range(1, 101):
        # Ten chains of four, and sixty at once.
        follows = number > 60 and (number - 61) % 4
        initiator = f"/items/{number - 1}" if follows else "/app.js"
        size = chance.randint(200, 4_000)
        resources.append(Resource(f"/items/{number}", "fetch", size, initiator, 1.0, chance.randint(1, 20)))
    return Page(
        "An application with 100 small requests",
        "Chosen here: 60 requests at once, and ten chains of four, of 0.2 to 4 kB",
        tuple(resources),
    )


def made() -> dict[str, Page]:
    """All pages, by their names."""
    own = {
        "deutschmann": slides(), "kuhn-a": single("A", 5_300_000, "5.3 MB"),
        "kuhn-b": single("B", 11_000, "11 kB"), "video": video(), "api": api(),
    }  # fmt: skip
    return {name: drawn(recipe) for name, recipe in RECIPES.items()} | own


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the pages in pages/, each from its recipe and seed.")
    parser.add_argument("--check", action="store_true", help="change nothing; fail if a file would change")
    check = parser.parse_args().check
    stale = []
    for name, one in made().items():
        file = FOLDER / f"{name}.toml"
        if check and not (file.exists() and file.read_text() == toml.text(one)):
            stale.append(file.name)
        if not check:
            file.write_text(toml.text(one))
    if stale:
        sys.exit(f"error: not as their recipes make them: {', '.join(stale)}\nhint: tools/page_recipes.py")


if __name__ == "__main__":
    main()
