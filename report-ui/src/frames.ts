// What a stream of frames is to the report: its measures, and what its cells and matrices are called.

import { duration } from "./format";
import type { Cell } from "./model";

export type FrameMeasure =
  | "frames"
  | "late_frames"
  | "lost_frames"
  | "frame_age_median_s"
  | "frame_age_p95_s"
  | "frame_age_p99_s"
  | "frame_age_max_s";

/** The measures in their order: the column of records, what it is called, how a value is written. */
export const FRAME_MEASURES: [column: FrameMeasure, name: string, show: (value: number) => string][] = [
  ["frames", "frames", String],
  ["late_frames", "late", String],
  ["lost_frames", "lost", String],
  ["frame_age_median_s", "median age", duration],
  ["frame_age_p95_s", "95 %", duration],
  ["frame_age_p99_s", "99 %", duration],
  ["frame_age_max_s", "oldest", duration],
];

/** The stream of frames of a workload and further flows, as in `frames:30s:streams:400ms`; null for any other. */
export function frames(
  workload: string,
): { time: string; over: string; deadline: string; beside: string } | null {
  const found = workload.match(/^frames:(\d+m?s):(streams|datagrams):(\d+m?s)( \+ .*)?$/) ?? [];
  const [, time, over, deadline, beside = ""] = found;
  return time && over && deadline ? { time, over, deadline, beside } : null;
}

/** What came of a cell of frames: how old the oldest of 99 % were, and what share was late or lost; null if none came. */
export function arrived(cell: Cell): { age: string; missed: string } | null {
  const { frames, late_frames, lost_frames, frame_age_p99_s } = cell.spreads;
  if (!frames || !late_frames || !lost_frames || !frame_age_p99_s) return null;
  const missed = (late_frames.median + lost_frames.median) / frames.median;
  return { age: duration(frame_age_p99_s.median), missed: `${(100 * missed).toFixed(1)} % late or lost` };
}
