// What a stream of frames is to the report: its measures, and what its cells and matrices are called.

import { duration } from "./format";
import type { Cell } from "./model";

/** To a tenth: of a thousand frames a single one may be missing. */
function share(ratio: number): string {
  return `${(100 * ratio).toFixed(1)} %`;
}

/** The measures in their order: the column of records, what it is called, how a value is written. */
export const FRAME_MEASURES = [
  ["frames", "frames", String],
  ["late_frames", "late", String],
  ["lost_frames", "lost", String],
  ["in_time_share", "in time", share],
  ["frame_age_median_s", "median age", duration],
  ["frame_age_p95_s", "95 %", duration],
  ["frame_age_p99_s", "99 %", duration],
  ["frame_age_max_s", "oldest that came", duration],
] as const satisfies [column: string, name: string, show: (value: number) => string][];

export type FrameMeasure = (typeof FRAME_MEASURES)[number][0];

/** The stream of frames of a workload and further flows, as in `frames:30s:streams:400ms`; null for any other. */
export function frames(
  workload: string,
): { time: string; over: string; deadline: string; beside: string } | null {
  const found = workload.match(/^frames:(\d+m?s):(streams|datagrams):(\d+m?s)( \+ .*)?$/) ?? [];
  const [, time, over, deadline, beside = ""] = found;
  return time && over && deadline ? { time, over, deadline, beside } : null;
}

/**
 * What came of a cell of frames: how old the oldest of 99 % were, with a dash if more than 1 % were lost, and what share was
 * late or lost; null if no trial of it succeeded.
 */
export function arrived(cell: Pick<Cell, "spreads">): { age: string; missed: string } | null {
  const { in_time_share, frame_age_p99_s } = cell.spreads;
  if (!in_time_share) return null;
  return {
    age: frame_age_p99_s ? duration(frame_age_p99_s.median) : "–",
    missed: `${share(1 - in_time_share.median)} late or lost`,
  };
}
