// Compares runs of a site as its page does: cases as JSON on standard input, what comes out on standard output.
// `tests/python/test_site_comparison.py` holds this against what `bentpipe compare` says of the same runs.

import { readFileSync } from "node:fs";
import { compare, remarks } from "../src/collection/comparison";
import type { Site } from "../src/collection/model";
import { mean, outcomes, type Trials } from "../src/collection/samples";

interface Given {
  site: Site;
  codes: Record<string, number[]>;
  measures: Record<string, (number | null)[]>;
  pairs: [a: number, b: number][];
}

const { site, codes, measures, pairs } = JSON.parse(readFileSync(0, "utf8")) as Given;
const found = Object.entries(measures).flatMap(([column, values]) => {
  const all: Trials = {
    count: values.length,
    codes: Object.fromEntries(
      Object.entries(codes).map(([name, of]) => [name, Float32Array.from(of)]),
    ) as Trials["codes"],
    values: Float32Array.from(values, (value) => value ?? NaN),
  };
  return pairs.map(([a, b]) => {
    const both = compare(site, all, a, b);
    const cells = both.cells.map((one) => ({
      cell: one.cell,
      means: [mean(one.a), mean(one.b)],
      outcomes: [outcomes(one.a), outcomes(one.b)],
      value: one.ratio?.value ?? null,
      interval: one.ratio?.interval(site.confidence) ?? null,
      p: one.ratio?.p ?? null,
      adjustedP: one.adjustedP,
      significant: one.significant,
      mixed: one.mixed,
    }));
    const said = remarks(site, both, site.runs[a]!, site.runs[b]!, column);
    return { column, a, b, cells, onlyA: both.onlyA, onlyB: both.onlyB, remarks: said };
  });
});
process.stdout.write(JSON.stringify(found));
