// The data of the pages, as `overview.py` and `cell_page.py` of `python/bentpipe/report` write it. Keys carry their unit; ratios are 0 to 1.

import type { Manifest } from "./schema/manifest";
import type { FrameMeasure } from "./frames";
import type { LiveMeasure } from "./live";
import type { PageTime } from "./page";
import type { HopResult, ProxyResult, ShownRecord } from "./schema/record";
import type { FilmFrame, PageRequest } from "./schema/requests";

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export interface Spread {
  min: number;
  median: number;
  /** Null where it is infinite: the age that frames never reached, as too many were lost. */
  max: number | null;
}

/** One trial as the distributions need it. */
export interface Trial {
  iteration: number;
  outcome: string;
  detail: string;
  efficiency: number | null;
}

/** One client and server: an entry of the matrix. */
export interface Cell {
  slug: string;
  client: string;
  server: string;
  goodput_mean_bps: number | null;
  /** Null for fewer than two goodputs. */
  goodput_deviation_bps: number | null;
  efficiency: number | null;
  /** Over HTTP/3, not hq-interop. */
  h3: boolean;
  /** Outcome and how often, of the iterations that failed. */
  failures: [string, number][];
  spreads: Record<
    "goodput_bps" | "completion_s" | "handshake_s" | "share_of_limit" | PageTime | LiveMeasure | FrameMeasure,
    Spread | null
  >;
  trials: Trial[];
  /** Rules that found something wrong in its trials, and in how many of them. */
  findings: [string, number][];
}

/** A row, a column or the whole of a matrix, over the cells that have a success. */
export interface Margin {
  name: string;
  efficiency: number | null;
  efficiency_max: number | null;
  goodput_bps: number | null;
  goodput_max_bps: number | null;
  cells: number;
  cells_failed: number;
  /** Cells that have an efficiency. */
  cells_measured: number;
  /** Cells that have a success and are over HTTP/3. */
  cells_h3: number;
  trials: number;
  failed: number;
}

export interface Matrix {
  scenario: string;
  workload: string;
  treatment: string;
  testbed: string;
  summary: { [key: string]: Json };
  clients: Margin[];
  servers: Margin[];
  total: Margin;
  cells: Cell[];
}

export interface Run {
  campaign: string;
  version: string;
  manifest: Manifest;
  trials: number;
  failed: number;
  /** Trials of a run that may be under way; null of one that is over. */
  planned: number | null;
  matrices: Matrix[];
}

/** One iteration on the page of its cell. */
export interface Iteration extends ShownRecord {
  files: { label: string; href: string }[];
  /** Null without a trace; else the script that holds it, or why it could not be read. */
  trace: { script: string | null; failure: string | null } | null;
}

/** The packets of a request's stream that the server sent, and when those left that were lost. */
export interface StreamPackets {
  packets: number;
  lost_s: number[];
}

/** What a rule says of a page, and the numbers behind that in a sentence. */
export interface PageFinding {
  rule: string;
  title: string;
  verdict: "yes" | "no" | "not_sure";
  text: string;
}

/** What an iteration asked for, in the order of asking. */
export interface Waterfall {
  iteration: number;
  requests: PageRequest[];
  /** Parallel to these; null where a request has no stream of its own, or it is not known which. */
  streams: StreamPackets[] | null;
  /** What was to be seen, in order; empty where no browser told. */
  film: FilmFrame[];
  /** What rules say of the page. */
  findings: PageFinding[];
  /** Why it cannot be shown; null if it can. */
  failure: string | null;
}

export interface CellDetail {
  scenario: string;
  workload: string;
  treatment: string;
  testbed: string;
  client: string;
  server: string;
  slug: string;
  /** Of the files whose course is drawn: where there are two connections, those of the second. */
  measured_bytes: number;
  /** Who receives them: in an upload, the server. */
  receiver: "client" | "server";
  /** Of the link towards the receiver; null where the manifest does not say. */
  rate_bps: number | null;
  limit_s: number | null;
  /** The course of an ideal sender: files and headers; null where the path is not known. */
  ideal: [s: number, bytes: number][] | null;
  /** The iteration that stands for the cell; null if none succeeded. */
  median: number | null;
  command: string;
  /** Of the iteration that stands for the cell; null of anything but pages, and where it was not kept. */
  waterfall: Waterfall | null;
  /** Between client, proxies and server; empty without proxies. */
  hops: HopResult[];
  proxies: Pick<ProxyResult, "place" | "cpu_s" | "memory_bytes">[];
  endpoints: { role: string; name: string; version: string; driver: string }[];
  iterations: Iteration[];
}

declare global {
  interface Window {
    bentpipeRun?: Run;
    bentpipeCell?: CellDetail;
  }
}
