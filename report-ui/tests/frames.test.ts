import assert from "node:assert/strict";
import { test } from "node:test";
import { arrived, FRAME_MEASURES } from "../src/frames";
import type { Cell, Spread } from "../src/model";

/** A cell of frames with these medians. */
function cell(in_time_share: number | null, frame_age_p99_s: number | null): Pick<Cell, "spreads"> {
  const spread = (value: number | null): Spread | null =>
    value === null ? null : { min: value, median: value, max: value };
  const spreads = { in_time_share: spread(in_time_share), frame_age_p99_s: spread(frame_age_p99_s) };
  return { spreads: spreads as Cell["spreads"] };
}

const plain = (text: string) => text.replaceAll("\u202f", " ");

test("a cell of frames says how many were missed, also where none came", () => {
  const good = arrived(cell(0.995, 0.335));
  assert.equal(plain(good!.age), "335 ms");
  assert.equal(good!.missed, "0.5 % late or lost");
  assert.deepEqual(arrived(cell(0, null)), { age: "–", missed: "100.0 % late or lost" });
  assert.equal(arrived(cell(null, null)), null);
});

test("each measure of frames stands once", () => {
  const columns = FRAME_MEASURES.map(([column]) => column);
  assert.equal(new Set(columns).size, columns.length);
});
