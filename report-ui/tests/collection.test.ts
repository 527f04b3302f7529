import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateSync } from "node:zlib";
import { unpack } from "../src/collection/columns";
import { compare } from "../src/collection/comparison";
import { corners } from "../src/collection/distributionsPage";
import { matching } from "../src/collection/frame";
import { adjusted, geometricMean, ratio, tQuantile, tTest } from "../src/collection/inference";
import type { RunEntry, Site } from "../src/collection/model";
import { outcomes, summary, type Trials } from "../src/collection/samples";
import { arrow, series } from "../src/collection/series";

function near(found: number | null | undefined, wanted: number): void {
  assert.ok(typeof found === "number" && Math.abs(found / wanted - 1) < 1e-9, `${found}, not ${wanted}`);
}

// What `ratio`, `t_test` and `t_quantile` of python/bentpipe/analysis/inference.py say of the same arguments.
const RATIO = {
  value: 1.5200777058685537,
  low: 1.1167025898457748,
  high: 2.0691599114117953,
  p: 0.024088602240369596,
};
const T_TEST = 0.07182202291182672;
const T_QUANTILE = 3.8071632082321307;
const T_QUANTILE_OF_MANY = 1.960557228793424;

test("the statistics are those of Python", () => {
  const one = ratio([1, 1.2, 0.9], [1.5, 1.7, 1.45, 1.6]);
  near(one?.value, RATIO.value);
  near(one?.p, RATIO.p);
  const [low, high] = one!.interval(0.95)!;
  near(low, RATIO.low);
  near(high, RATIO.high);
  near(tTest(2.5, 3.7), T_TEST);
  near(tQuantile(0.95, 2.3), T_QUANTILE);
  near(tQuantile(0.95, 4000), T_QUANTILE_OF_MANY);
});

test("samples that do not vary differ or are the same", () => {
  assert.equal(ratio([2, 2], [2, 2])?.p, 1);
  assert.equal(ratio([2, 2], [3, 3])?.p, 0);
  assert.deepEqual(ratio([2, 2], [4, 4])?.interval(0.95), [2, 2]);
});

test("of single values there is a ratio and no p; of none, or of 0, no ratio", () => {
  assert.deepEqual([ratio([2], [3])?.value.toFixed(9), ratio([2], [3])?.p], ["1.500000000", null]);
  assert.equal(ratio([], [1]), null);
  assert.equal(ratio([0, 1], [1, 2]), null);
  assert.equal(geometricMean([]), null);
});

test("p is adjusted over what was tested", () => {
  assert.deepEqual(adjusted([0.01, null, 0.04, 0.03]), [0.03, null, 0.04, 0.04]);
});

test("a column is put together from its bytes", async () => {
  const values = new Float32Array([1.5, NaN, -3e7]);
  const bytes = new Uint8Array(values.buffer);
  const planes = Uint8Array.from({ length: 12 }, (_, i) => bytes[(i % 3) * 4 + Math.floor(i / 3)]!);
  const base64 = deflateSync(planes).toString("base64");
  assert.deepEqual(await unpack({ count: 3, base64 }), values);
  await assert.rejects(unpack({ count: 4, base64 }), RangeError);
});

// What `quantile` and `median` of python/bentpipe/study/quantiles.py say of the same values.
test("quartiles are those of the pages of studies", () => {
  const of = (values: number[]) => {
    const found = summary(values);
    return [found?.min, found?.quarter, found?.median, found?.threeQuarters, found?.max];
  };
  assert.deepEqual(of([4, 1, 3, 2]), [1, 1, 2.5, 3, 4]);
  assert.deepEqual(of([5, 4, 1, 3, 2]), [1, 2, 3, 4, 5]);
  assert.deepEqual(of([7]), [7, 7, 7, 7, 7]);
  assert.equal(summary([]), null);
});

test("a curve of many values has as many corners as can be seen", () => {
  const many = Float64Array.from({ length: 100_000 }, (_, i) => i);
  assert.equal(corners(many).length, 601);
  assert.deepEqual(corners(many).at(-1), [99_999, 1]);
  assert.deepEqual(corners(Float64Array.of(1, 1, 2)), [
    [1, 0],
    [1, 2 / 3],
    [2, 1],
  ]);
});

/** Runs of one cell with these values each, and the versions of its stack; NaN is a trial that failed. */
function made(values: number[][], versions: string[]): [Site, Trials] {
  const runs = versions.map((version, i) => ({
    name: `run ${i}`,
    campaign: "c",
    stacks: [{ name: "s", version, build: null }],
    paths: {},
    ip: 4,
    cells: [0],
    finished: "",
  }));
  const site = {
    runs: runs as unknown as RunEntry[],
    cells: [{ scenario: "sat", workload: "w", treatment: "direct", client: "s", server: "s:iw=3" }],
    testbeds: ["sim"],
    outcomes: ["ok", "crashed"],
    protocols: ["hq-interop"],
    false_discoveries: 0.05,
  } as unknown as Site;
  const flat = values.flatMap((of, run) => of.map((value) => ({ value, run })));
  const zeros = () => new Float32Array(flat.length);
  const codes = {
    run: Float32Array.from(flat, ({ run }) => run),
    cell: zeros(),
    testbed: zeros(),
    outcome: Float32Array.from(flat, ({ value }) => Number(Number.isNaN(value))),
    alpn: zeros(),
    seed: Float32Array.from(flat, (_, i) => i),
  };
  return [site, { count: flat.length, codes, values: Float32Array.from(flat, ({ value }) => value) }];
}

test("a cell is followed from run to run, over those in which it was not measured", () => {
  const [site, all] = made(
    [
      [1, 1.1, 1.05],
      [NaN, NaN],
      [2, 2.1, 2.05],
    ],
    ["1", "1", "2"],
  );
  const [one] = series(site, all);
  assert.deepEqual(
    one?.points.map(({ sample }) => outcomes(sample)),
    ["3/3", "0/2, 2 crashed", "3/3"],
  );
  assert.deepEqual(
    one.steps.map(({ from, to, significant, marks }) => [from, to, significant, marks]),
    [[0, 2, true, ["s: 1 → 2"]]],
  );
});

test("what chance may do is no change", () => {
  const [site, all] = made(
    [
      [1, 1.1, 1.05],
      [1.02, 1.08, 1.1],
    ],
    ["1", "1"],
  );
  const [one] = series(site, all);
  assert.deepEqual([one?.steps[0]?.significant, one?.steps[0]?.marks], [false, []]);
});

test("runs are compared over the cells that both have", () => {
  const [site, all] = made([[1, 1.1], [NaN]], ["1", "1"]);
  const { cells, onlyA } = compare(site, all, 0, 1);
  assert.deepEqual([cells.length, cells[0]?.ratio, cells[0]?.significant, onlyA], [1, null, false, []]);
});

test("changes are said with their direction", () => {
  assert.equal(arrow(1.125), "▲\u202f13\u202f%");
  assert.equal(arrow(0.97), "▼\u202f3.0\u202f%");
});

test("what is searched for has all words in it, what begins with the first one first", () => {
  const entry = (kind: string, name: string) => ({ kind, name, words: "", href: "" });
  const all = [entry("run", "of quinn"), entry("stack", "quinn"), entry("stack", "noq")];
  assert.deepEqual(
    matching(all, "QUINN").map(({ kind }) => kind),
    ["stack", "run"],
  );
  assert.deepEqual(
    matching(all, "stack no").map(({ name }) => name),
    ["noq"],
  );
  assert.deepEqual(matching(all, "  "), []);
});
