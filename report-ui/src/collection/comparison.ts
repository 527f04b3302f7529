// Two runs side by side, as `python/bentpipe/analysis/comparison.py` compares them: the same numbers and sentences, which
// tests/python/test_site_comparison.py holds equal. What is measured comes from Python, and nothing else is computed here.

import { adjusted, type Ratio } from "./inference";
import type { RunEntry, Site } from "./model";
import { group, sampleRatio, succeeded, type Sample, type Trials } from "./samples";

/** A cell of both runs. */
export interface ComparedCell {
  cell: number;
  a: Sample;
  b: Sample;
  ratio: Ratio | null;
  adjustedP: number | null;
  significant: boolean;
  /** Different application protocols were spoken: that alone may make a difference. */
  mixed: boolean;
}

export interface Comparison {
  /** The largest difference first. */
  cells: ComparedCell[];
  /** Cells that one of the runs alone has. */
  onlyA: number[];
  onlyB: number[];
}

export function compare(site: Site, all: Trials, a: number, b: number): Comparison {
  const of = (run: number) => group(site, all, (i) => (all.codes.run[i] === run ? all.codes.cell[i]! : -1));
  const [left, right] = [of(a), of(b)];
  const common = [...left.keys()].filter((cell) => right.has(cell));
  const ratios = common.map((cell) => sampleRatio(left.get(cell)!, right.get(cell)!));
  const pValues = adjusted(ratios.map((one) => one?.p ?? null));
  const cells = common.map((cell, i): ComparedCell => {
    const [sampleA, sampleB, p] = [left.get(cell)!, right.get(cell)!, pValues[i] ?? null];
    return {
      cell,
      a: sampleA,
      b: sampleB,
      ratio: ratios[i] ?? null,
      adjustedP: p,
      significant: p !== null && p <= site.false_discoveries,
      mixed: isMixed(sampleA, sampleB),
    };
  });
  return {
    cells: cells.sort((one, other) => distance(other) - distance(one)),
    onlyA: [...left.keys()].filter((cell) => !right.has(cell)),
    onlyB: [...right.keys()].filter((cell) => !left.has(cell)),
  };
}

function isMixed(a: Sample, b: Sample): boolean {
  const alike =
    a.protocols.size === b.protocols.size && [...a.protocols].every((one) => b.protocols.has(one));
  return a.protocols.size > 0 && b.protocols.size > 0 && !alike;
}

/** How far the ratio is from 1, either way; infinite if one side alone has values, or all of one side are above 0 and
 * none of the other. */
function distance({ a, b, ratio: found }: ComparedCell): number {
  if (found) return Math.abs(Math.log(found.value));
  const oneHasValues = a.values.length > 0 !== b.values.length > 0;
  return oneHasValues || (isEverywhere(a) && isNowhere(b)) || (isNowhere(a) && isEverywhere(b))
    ? Infinity
    : 0;
}

/** Every trial that succeeded has a value above 0, and one did. */
function isEverywhere(sample: Sample): boolean {
  return succeeded(sample) > 0 && positive(sample) === succeeded(sample);
}

/** No trial that succeeded has a value above 0, though one did. */
function isNowhere(sample: Sample): boolean {
  return succeeded(sample) > 0 && positive(sample) === 0;
}

function positive({ values }: Sample): number {
  return values.filter((value) => value > 0).length;
}

/** What a reader of the table should know of the two runs and the cells, a sentence each. */
export function remarks(site: Site, both: Comparison, a: RunEntry, b: RunEntry, column: string): string[] {
  const unfinished = (["A", "B"] as const).filter((name) => (name === "A" ? a : b).finished === null);
  return [
    ...unfinished.map((name) => `${name} is not finished: what is still to come is not in it`),
    ...paths(site, both, a, b),
    ...programs(a, b).map(({ text }) => text),
    ...gaps(both, column),
  ];
}

/** Scenarios whose label is the same, and whose path is not, or not known to be. */
function paths(site: Site, { cells }: Comparison, a: RunEntry, b: RunEntry): string[] {
  const imported = (["A", "B"] as const).filter((name) => (name === "A" ? a : b).imported);
  if (imported.length > 0)
    return [`what the paths of ${imported.join(" and ")} were is not known: that was imported`];
  const labels = new Set(cells.map(({ cell }) => site.cells[cell]!.scenario));
  return [...labels]
    .filter((label) => a.paths[label] !== b.paths[label])
    .map((label) => `${label} is not the same path in both runs: compare the scenarios in their manifests`);
}

/** Stacks of both runs that are of another version, or built from something else; `from` and `to` in few words. */
export function programs(
  a: RunEntry,
  b: RunEntry,
): { name: string; from: string; to: string; text: string }[] {
  return a.stacks.flatMap((left) => {
    const right = b.stacks.find(({ name }) => name === left.name);
    if (!right) return [];
    const { name } = left;
    if (left.version !== right.version && left.version !== null && right.version !== null) {
      const [from, to] = [left.version, right.version];
      return [{ name, from, to, text: `${name} is ${from} in A, ${to} in B` }];
    }
    if (left.build === right.build || left.build === null || right.build === null) return [];
    const text = `${name} has the same version in both, but was built from other sources`;
    return [{ name, from: `sources ${left.build}`, to: `sources ${right.build}`, text }];
  });
}

function gaps({ cells, onlyA, onlyB }: Comparison, column: string): string[] {
  const both = cells.filter(({ a, b }) => a.values.length > 0 && b.values.length > 0);
  const sides = ({ a, b }: ComparedCell) => [a, b];
  const several: [ComparedCell[] | number[], string][] = [
    [cells.filter(({ mixed }) => mixed), "with different application protocols"],
    [
      cells.filter(({ ratio: found }) => found !== null && found.p === null),
      "with a single trial on a side: no interval, and nothing can be significant",
    ],
    [
      cells.filter(
        (one) =>
          sides(one).every((side) => succeeded(side) > 0) &&
          sides(one).some(({ values }) => values.length === 0),
      ),
      `without ${column} on a side though trials succeeded`,
    ],
    [
      both.filter((one) => sides(one).some((side) => side.values.length < succeeded(side))),
      `without ${column} in some trials that succeeded: they do not count`,
    ],
    [
      both.filter((one) => sides(one).some(({ values }) => values.includes(0))),
      `with a ${column} of 0: no ratio, and arithmetic means`,
    ],
    [
      cells.filter(({ a, b }) => succeeded(a) > 0 && succeeded(b) === 0),
      "that succeeded in A and never in B",
    ],
    [onlyA, "only in A"],
    [onlyB, "only in B"],
  ];
  return several
    .filter(([found]) => found.length > 0)
    .map(([{ length }, what]) => `${length} cell${length > 1 ? "s" : ""} ${what}`);
}
