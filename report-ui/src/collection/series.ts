// A measure of each cell over the runs in which it was measured, and where it changed.

import { programs } from "./comparison";
import { adjusted, type Ratio } from "./inference";
import type { Site } from "./model";
import { group, sampleRatio, summary, type Sample, type Summary, type Trials } from "./samples";

/** What a run has of a cell. */
export interface Point {
  run: number;
  sample: Sample;
  /** Null where no trial that succeeded has a value. */
  summary: Summary | null;
}

/** From one run in which a cell was measured to the next one. */
export interface Step {
  from: number;
  to: number;
  ratio: Ratio | null;
  adjustedP: number | null;
  significant: boolean;
  /** What else differs: versions of its stacks, its path. */
  marks: string[];
}

/** A cell on a testbed over the runs that have it, in their order. */
export interface Series {
  cell: number;
  testbed: number;
  points: Point[];
  steps: Step[];
}

/** All series that have a value, with p adjusted over all their steps. */
export function series(site: Site, all: Trials): Series[] {
  const [beds, runs] = [site.testbeds.length, site.runs.length];
  const { run, cell, testbed } = all.codes;
  const samples = group(site, all, (i) => (cell[i]! * beds + testbed[i]!) * runs + run[i]!);
  const found = new Map<number, Series>();
  for (const [key, sample] of samples) {
    const place = Math.floor(key / runs);
    const one = found.get(place) ?? {
      cell: Math.floor(place / beds),
      testbed: place % beds,
      points: [],
      steps: [],
    };
    one.points.push({ run: key % runs, sample, summary: summary(sample.values) });
    found.set(place, one);
  }
  const measured = [...found.values()].filter(({ points }) => points.some((point) => point.summary));
  for (const one of measured) {
    one.points.sort((a, b) => a.run - b.run);
    one.steps = steps(site, one);
  }
  const every = measured.flatMap((one) => one.steps);
  adjusted(every.map((step) => step.ratio?.p ?? null)).forEach((p, i) => {
    const step = every[i]!;
    step.adjustedP = p;
    step.significant = p !== null && p <= site.false_discoveries;
  });
  return measured;
}

function steps(site: Site, { cell, points }: Series): Step[] {
  const known = points.filter((point) => point.summary);
  return known.slice(1).map((point, i): Step => {
    const before = known[i]!;
    return {
      from: before.run,
      to: point.run,
      ratio: sampleRatio(before.sample, point.sample),
      adjustedP: null,
      significant: false,
      marks: marks(site, cell, before.run, point.run),
    };
  });
}

/** The name of a variant's stack: what stands before its options. */
export function stackOf(variant: string): string {
  return variant.split(":")[0]!;
}

/** What differs between two runs that a cell may depend on. */
function marks(site: Site, cell: number, from: number, to: number): string[] {
  const { client, server, scenario } = site.cells[cell]!;
  const [a, b] = [site.runs[from]!, site.runs[to]!];
  const stacks = [stackOf(client), stackOf(server)];
  return [
    ...programs(a, b)
      .filter(({ name }) => stacks.includes(name))
      .map((one) => `${one.name}: ${one.from} → ${one.to}`),
    ...(a.paths[scenario] === b.paths[scenario] ? [] : [`${scenario}: another path`]),
    ...(a.ip === b.ip ? [] : [`IPv${a.ip} → IPv${b.ip}`]),
  ];
}

/** How far the largest significant change is from none; 0 without one. */
export function change({ steps: all }: Series): number {
  const far = all
    .filter((step) => step.significant)
    .map((step) => Math.abs(Math.log(step.ratio?.value ?? 1)));
  return Math.max(0, ...far);
}

/** As `▲ 12 %`. */
export function arrow(value: number): string {
  const share = (value - 1) * 100;
  const digits = Math.abs(share) < 10 ? 1 : 0;
  return `${share >= 0 ? "▲" : "▼"}\u202f${Math.abs(share).toFixed(digits)}\u202f%`;
}
