import assert from "node:assert/strict";
import { test } from "node:test";
import { ecdf, points } from "../src/distribution";
import type { Cell, Iteration } from "../src/model";
import { ideal, rates, received, spans, stepsJoined } from "../src/received";

/** An iteration of which only its course matters. */
function iteration(outcome: string, received_bytes: number[], completion_s: number | null = null): Iteration {
  return { outcome, received_bytes, received_step_s: 0.5, completion_s } as Iteration;
}

test("an ideal sender starts after two round trips and ends at the limit", () => {
  const cell = { limit_s: 5.6, size_bytes: 10_485_760 };
  assert.deepEqual(ideal(cell, { rtt_s: 0.6, forward_rate_bps: 20e6 }), [[0, 0], [1.2, 0], [5.6, 10_485_760]]);
});

test("without a round-trip time there is no ideal sender to draw", () => {
  assert.equal(ideal({ limit_s: 5.6, size_bytes: 1 }, { rtt_s: null, forward_rate_bps: null }), null);
  assert.equal(ideal({ limit_s: 1, size_bytes: 1 }, { rtt_s: 0.6, forward_rate_bps: null }), null);
});

test("a course starts at nothing and has its counts at the ends of steps", () => {
  assert.deepEqual(received(iteration("ok", [10, 30])), [[0, 0], [0.5, 10], [1, 30]]);
});

test("rates add up to the bytes received, also over a last window that is short", () => {
  const one = iteration("ok", [100, 300, 300, 450, 500]);
  const course = rates(one, 2);
  assert.deepEqual(course, [[0.5, 2400], [1.5, 1200], [2.25, 800]]);
  assert.equal(2400 * 1 + 1200 * 1 + 800 * 0.5, 8 * 500);
});

test("steps are joined to 100 ms, and further on long axes", () => {
  assert.equal(stepsJoined(0.05, 10), 2);
  assert.equal(stepsJoined(0.1, 10), 1);
  assert.equal(stepsJoined(0.05, 120), 16);
  assert.equal(stepsJoined(1, 1), 1);
});

test("failed iterations do not stretch the axis unasked", () => {
  const all = [iteration("ok", [1], 9), iteration("transfer_timeout", Array(240).fill(0))];
  assert.deepEqual(spans(all), { ok: 9, all: 120 });
  assert.deepEqual(spans(all.slice(1)), { ok: 120, all: 120 });
});

test("the distribution function steps at each value and ends at 1", () => {
  assert.deepEqual(ecdf([0.5, 0, 0.5, 0.25]), [[0, 0.25], [0.25, 0.5], [0.5, 1]]);
  assert.deepEqual(ecdf([]), []);
});

test("a failed trial counts as 0, an unsupported one not at all", () => {
  const trials = [
    { iteration: 1, outcome: "ok", detail: "", efficiency: 0.5 },
    { iteration: 2, outcome: "crashed", detail: "", efficiency: null },
    { iteration: 3, outcome: "unsupported", detail: "", efficiency: null },
  ];
  const found = points([{ trials } as Cell]);
  assert.deepEqual(found.map(({ efficiency, failed }) => [efficiency, failed]), [[0.5, false], [0, true]]);
});
