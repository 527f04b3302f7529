// The trials of a site, grouped: what each run has of each cell, for one measure.

import { column, type Code } from "./columns";
import { geometricMean, pairedRatio, ratio, type Ratio } from "./inference";
import type { Site } from "./model";

/** The codes of all trials, and one column of numbers. */
export interface Trials {
  count: number;
  codes: Record<Code, Float32Array>;
  values: Float32Array;
}

/** What a run has of a cell. */
export interface Sample {
  trials: number;
  /** Outcome and how often, of the trials that failed. */
  failures: Map<string, number>;
  /** The application protocols of those that succeeded, as far as they are known. */
  protocols: Set<number>;
  /** Of those that succeeded and have a value. */
  values: number[];
  /** The seeds of the same trials, as numbers; null of trials that were imported, whose draws do not come from it. */
  seeds: number[] | null;
}

/** The fewest pairs that are compared as such. */
const LEAST = 5;

const CODES: Code[] = ["run", "cell", "testbed", "outcome", "alpn", "seed"];

/** All trials, with the values of a column of this name. */
export async function trials(site: Site, name: string): Promise<Trials> {
  const [values, ...codes] = await Promise.all([
    column(site.columns.indexOf(name)),
    ...CODES.map((code) => column(code)),
  ]);
  return {
    count: values.length,
    codes: Object.fromEntries(CODES.map((code, i) => [code, codes[i]!])) as Trials["codes"],
    values,
  };
}

/** Group trials by what `key` says of their place, -1 to leave one out; in the order in which groups first appear. */
export function group(site: Site, all: Trials, key: (place: number) => number): Map<number, Sample> {
  const ok = site.outcomes.indexOf("ok");
  const found = new Map<number, Sample>();
  for (let i = 0; i < all.count; i++) {
    const name = key(i);
    if (name < 0) continue;
    let sample = found.get(name);
    if (!sample) {
      const { imported } = site.runs[all.codes.run[i]!]!;
      sample = {
        trials: 0,
        failures: new Map(),
        protocols: new Set(),
        values: [],
        seeds: imported ? null : [],
      };
      found.set(name, sample);
    }
    sample.trials++;
    const outcome = all.codes.outcome[i]!;
    if (outcome === ok) {
      const protocol = all.codes.alpn[i]!;
      if (site.protocols[protocol]) sample.protocols.add(protocol);
      if (!Number.isNaN(all.values[i]!)) {
        sample.values.push(all.values[i]!);
        sample.seeds?.push(all.codes.seed[i]!);
      }
    } else {
      const said = site.outcomes[outcome] ?? "";
      sample.failures.set(said, (sample.failures.get(said) ?? 0) + 1);
    }
  }
  return found;
}

/** The ratio of geometric means, second / first: of pairs of trials where both samples have the same seeds, five or more and each once,
 * else of independent ones. As python/bentpipe/analysis/cell_ratio.py has it. */
export function sampleRatio(first: Sample, second: Sample): Ratio | null {
  const seeds = new Set(first.seeds);
  const partners = new Map(second.seeds?.map((seed, i) => [seed, second.values[i]!]));
  const paired =
    seeds.size >= LEAST &&
    seeds.size === first.values.length &&
    partners.size === second.values.length &&
    seeds.size === partners.size &&
    [...seeds].every((seed) => partners.has(seed));
  return paired
    ? pairedRatio(first.values, first.seeds?.map((seed) => partners.get(seed)!) ?? [])
    : ratio(first.values, second.values);
}

export function succeeded(sample: Sample): number {
  let failed = 0;
  for (const count of sample.failures.values()) failed += count;
  return sample.trials - failed;
}

/** `5/5`, or with what failed `3/5, 2 crashed`. */
export function outcomes(sample: Sample): string {
  const failed = [...sample.failures]
    .sort((a, b) => b[1] - a[1])
    .map(([name, count]) => `, ${count} ${name}`);
  return `${succeeded(sample)}/${sample.trials}${failed.join("")}`;
}

/** The geometric mean; where a value is 0 the arithmetic one. Null if there are no values. */
export function mean({ values }: Sample): number | null {
  if (values.length === 0) return null;
  return values.includes(0)
    ? values.reduce((sum, value) => sum + value, 0) / values.length
    : geometricMean(values);
}

/** The smallest of values in ascending order that at least this share of them does not exceed: as
 * python/bentpipe/study/quantiles.py has it for the pages of studies. */
export function quantile(sorted: ArrayLike<number>, share: number): number {
  return sorted[Math.max(Math.ceil(share * sorted.length) - 1, 0)] ?? NaN;
}

/** The median of values in ascending order: of an even number the mean of the two in the middle. */
export function median(sorted: ArrayLike<number>): number {
  const middle = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(middle)] ?? NaN) + (sorted[Math.ceil(middle)] ?? NaN)) / 2;
}

export interface Summary {
  count: number;
  min: number;
  quarter: number;
  median: number;
  threeQuarters: number;
  max: number;
  mean: number;
}

/** Of some values; null of none. */
export function summary(values: ArrayLike<number>): Summary | null {
  if (values.length === 0) return null;
  const sorted = Float64Array.from(values).sort();
  return {
    count: sorted.length,
    min: sorted[0]!,
    quarter: quantile(sorted, 0.25),
    median: median(sorted),
    threeQuarters: quantile(sorted, 0.75),
    max: sorted[sorted.length - 1]!,
    mean: sorted.reduce((sum, value) => sum + value, 0) / sorted.length,
  };
}
