// The data of a site of many runs, as `python/bentpipe/report/collection` writes it.

export interface StackBuild {
  name: string;
  version: string | null;
  /** The begin of the hash of what it was built from. */
  build: string | null;
}

export interface RunEntry {
  name: string;
  heading: string;
  campaign: string;
  title: string;
  /** UTC, as in 2026-03-01T10:20:30Z. */
  started: string;
  /** Null where the run did not come to its end. */
  finished: string | null;
  bentpipe: string | null;
  commit: string | null;
  testbeds: string[];
  ip: number;
  seed: number;
  stacks: StackBuild[];
  /** By another program: what its paths were is not known. */
  imported: boolean;
  /** Label of a scenario and a hash of its path. */
  paths: Record<string, string>;
  scenarios: string[];
  /** By their places among the site's. */
  cells: number[];
  trials: number;
  failed: number;
  outcomes: Record<string, number>;
  left_out: Record<string, string>;
  /** To its report's first page; null where there is none. */
  report: string | null;
}

/** What the trials of a cell have in common, whatever the testbed. */
export interface CellName {
  scenario: string;
  workload: string;
  treatment: string;
  client: string;
  server: string;
}

/** A column of records, and how people read it. */
export interface Measure {
  column: string;
  title: string;
  factor: number;
  digits: number;
}

export interface StudyEntry {
  name: string;
  title: string;
  question: string;
  pages: { title: string; href: string }[];
}

export interface Site {
  title: string;
  bentpipe: string;
  /** Of intervals. */
  confidence: number;
  /** The share of differences called significant that may be none. */
  false_discoveries: number;
  /** The one that started first first. */
  runs: RunEntry[];
  cells: CellName[];
  testbeds: string[];
  outcomes: string[];
  protocols: string[];
  /** The columns of numbers; a column's script is called by its place here. */
  columns: string[];
  measures: Measure[];
  skipped: { folder: string; why: string }[];
  studies: StudyEntry[];
}

export interface FailedTrial {
  run: number;
  cell: number;
  iteration: number;
  trial: string;
  href: string | null;
}

export interface FailureGroup {
  outcome: string;
  /** With a sign in place of numbers. */
  detail: string;
  example: string;
  /** False of what is not offered. */
  failed: boolean;
  trials: FailedTrial[];
}

export interface PackedColumn {
  count: number;
  base64: string;
}

declare global {
  interface Window {
    bentpipeSite?: Site;
    bentpipeFailures?: FailureGroup[];
    bentpipeColumn?: PackedColumn;
  }
}
