// What a live stream is to the report: its measures, and what cells and matrices of live streams are called.

import { duration, goodput } from "./format";
import type { Cell } from "./model";

export type LiveMeasure =
  "startup_s" | "stalls" | "stalled_s" | "media_rate_bps" | "rate_changes" | "latency_s";

/** The measures in their order: the column of records, what it is called, how a value is written. */
export const MEASURES: [column: LiveMeasure, name: string, show: (value: number) => string][] = [
  ["startup_s", "starts", duration],
  ["stalls", "stalls", String],
  ["stalled_s", "stalled", duration],
  ["media_rate_bps", "played", goodput],
  ["rate_changes", "rate changes", String],
  ["latency_s", "behind", duration],
];

/** The live stream of a workload, its version of HTTP and further flows, as in `live:60s:h3`; null for any other. */
export function live(workload: string): { time: string; http: string; beside: string } | null {
  const [, time, http, beside = ""] = workload.match(/^live:(\d+m?s):h([123])( \+ .*)?$/) ?? [];
  return time && http ? { time, http, beside } : null;
}

/** What a cell of live streams played: the median rate, and for how long it stalled, in words; null if it played none. */
export function played(cell: Cell): { rate: string; stalls: string } | null {
  const [rate, stalled] = [cell.spreads.media_rate_bps, cell.spreads.stalled_s];
  if (!rate || !stalled) return null;
  const stalls = stalled.median > 0 ? `stalled ${duration(stalled.median)}` : "no stall";
  return { rate: goodput(rate.median), stalls };
}
