import assert from "node:assert/strict";
import { test } from "node:test";
import { axisEnd, ecdf, points, swarm } from "../src/distribution";
import type { Cell, Iteration } from "../src/model";
import { hasRate, rates, rateWindow, received, spans, valueAt } from "../src/received";

/** An iteration of which only its course matters. */
function iteration(outcome: string, received_bytes: number[], completion_s: number | null = null): Iteration {
  return { outcome, received_bytes, received_step_s: 0.5, completion_s } as Iteration;
}

test("a course starts at nothing and has its counts at the ends of steps", () => {
  assert.deepEqual(received(iteration("ok", [10, 30])), [
    [0, 0],
    [0.5, 10],
    [1, 30],
  ]);
});

test("rates add up to the bytes received, also over a last window that is short", () => {
  const one = iteration("ok", [100, 300, 300, 450, 500]);
  const course = rates(one, 1);
  assert.deepEqual(course, [
    [0.5, 2400],
    [1.5, 1200],
    [2.25, 800],
  ]);
  assert.equal(2400 * 1 + 1200 * 1 + 800 * 0.5, 8 * 500);
});

test("a rate is taken over 100 ms, and over more on long axes", () => {
  assert.equal(rateWindow(10), 0.1);
  assert.equal(rateWindow(120), 0.8);
  assert.equal(rates(iteration("ok", [1, 2, 3, 4]), 0.1).length, 4); // a step of 0.5 s is not cut
});

test("courses are read between their points, and nowhere else", () => {
  const course: [number, number][] = [
    [0, 0],
    [1, 10],
    [3, 30],
  ];
  assert.deepEqual(
    [-1, 0, 0.5, 1, 2, 3, 3.1].map((s) => valueAt(course, s)),
    [null, 0, 5, 10, 20, 30, null],
  );
  assert.equal(valueAt([[0.5, 7]], 0.2), null);
  assert.equal(valueAt([], 0), null);
});

test("failed iterations do not stretch the axis unasked", () => {
  const all = [iteration("ok", [1], 9), iteration("transfer_timeout", Array(240).fill(0))];
  assert.deepEqual(spans(all), { ok: 9, all: 120 });
  assert.deepEqual(spans(all.slice(1)), { ok: 120, all: 120 });
});

test("the distribution function steps at each value and ends at 1", () => {
  assert.deepEqual(ecdf([0.5, 0, 0.5, 0.25]), [
    [0, 0.25],
    [0.25, 0.5],
    [0.5, 1],
  ]);
  assert.deepEqual(ecdf([]), []);
});

test("a failed trial counts as 0, an unsupported one not at all", () => {
  const trials = [
    { iteration: 1, outcome: "ok", detail: "", efficiency: 0.5 },
    { iteration: 2, outcome: "crashed", detail: "", efficiency: null },
    { iteration: 3, outcome: "unsupported", detail: "", efficiency: null },
  ];
  const found = points([{ trials } as Cell]);
  assert.deepEqual(
    found.map(({ efficiency, failed }) => [efficiency, failed]),
    [
      [0.5, false],
      [0, true],
    ],
  );
});

test("a success without goodput is not counted as 0", () => {
  const trial = { iteration: 1, outcome: "ok", detail: "", efficiency: null };
  assert.deepEqual(points([{ trials: [trial] } as unknown as Cell]), []);
});

test("a transfer shorter than five windows has no rate", () => {
  const steps = (count: number) => ({
    ...iteration(
      "ok",
      Array.from({ length: count }, (_, i) => i + 1),
    ),
    received_step_s: 0.1,
    transfer_s: null,
  });
  assert.equal(hasRate([steps(5)]), false);
  assert.equal(hasRate([steps(7)]), true);
  assert.equal(hasRate([{ ...steps(7), transfer_s: 0.2 }]), false);
});

test("an axis ends close above the largest value", () => {
  assert.deepEqual(
    [[], [0.003], [0.16, 0.03], [0.2], [0.61], [1]].map((values) => axisEnd(values)),
    [1, 1, 20, 20, 70, 100],
  );
});

test("equal trials are stacked, distant ones share a level", () => {
  assert.deepEqual(swarm([5, 5, 5, 5, 5], 1), [0, 1, -1, 2, -2]);
  assert.deepEqual(swarm([9, 5, 5.5, 6], 1), [0, 0, 1, 0]);
});
