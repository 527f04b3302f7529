// A trial's plots and findings as `python/bentpipe/report/traces.py` writes them, and as the page holds them.

import type { Event, Finding as Analyzed, PlotPlace } from "../schema/analysis";
import { integers, values, type Column } from "./columns";

export const KINDS = [
  "offset",
  "queue",
  "sojourn",
  "capacity",
  "es_n0",
  "link_delay",
  "link_loss",
  "elevation",
  "in_view",
  "number",
  "size",
  "rate",
  "rate_back",
  "in_flight",
  "rtt",
  "acks",
  "delay",
] as const;
export type Kind = (typeof KINDS)[number];

/** How a series is drawn. */
export type Mark =
  | "dots"
  | "early"
  | "retransmission"
  | "loss"
  | "tick"
  | "line"
  | "steps"
  | "ranges"
  | "limit"
  | "level"
  | "guide"
  | "pale"
  | "band"
  | "pinned";

interface SeriesOf<Numbers> {
  name: string;
  mark: Mark;
  /** A colour of the style sheet. */
  colour: string;
  times: Numbers;
  values: Numbers;
  /** The upper ends of ranges; `values` are the lower ones. */
  tops: Numbers | null;
  /** What goes with the values from a time on, as the name of a MODCOD or a satellite. */
  names?: [from_s: number, name: string][] | null;
}

/** A time at which a link sends nothing: a handover or an outage. */
export interface Interruption {
  from_s: number;
  to_s: number;
  what: string;
  /** The one that serves the terminal behind a handover; null where that is not known. */
  satellite: string | null;
}

/** A finding; what it names is in one of the page's plots. */
export type Finding = Omit<Analyzed, "plot"> & { plot: (Omit<PlotPlace, "kind"> & { kind: Kind }) | null };

interface TraceOf<Numbers> {
  trial: string;
  /** What a reader should know about the trace: what was not decoded, which side was captured. */
  notes: string[];
  end_s: number;
  events: Event[];
  /** How much earlier data passes the place of the offset plot than the client; null if it goes up. */
  others_earlier_s: number | null;
  findings: Finding[];
  /** Rules that found something here and not in the record of the trial, and the other way round. */
  unlike_record: { more: string[]; fewer: string[] };
  interruptions: Interruption[];
  plots: { kind: Kind; series: SeriesOf<Numbers>[] }[];
}

/** What the script of a trial holds. */
export type TraceScript = TraceOf<Column> & { data: string };

export type Series = SeriesOf<Float64Array>;
export type Trace = TraceOf<Float64Array>;

/** The trace with its columns read. */
export async function read({ data, ...script }: TraceScript): Promise<Trace> {
  const all = await integers(data);
  const series = (one: SeriesOf<Column>): Series => ({
    ...one,
    times: values(all, one.times),
    values: values(all, one.values),
    tops: one.tops && values(all, one.tops),
  });
  return { ...script, plots: script.plots.map((plot) => ({ ...plot, series: plot.series.map(series) })) };
}

declare global {
  interface Window {
    bentpipeTrial?: TraceScript;
  }
}
