// Messages of explore: generated from schemas/explore.toml by `make schemas`.

import type { Json } from "../model";

/** What a reply is. */
export type ReplyKind = "offer" | "path" | "trial" | "band" | "problem" | "done";

/** What the page says: the state that its reader has chosen. */
export type ExploreRequest = {
  /** The number of this format, as at the top of this page. */
  format: number;
  /** Its number; those of a page grow. */
  number: number;
  /** The state that is to be played. */
  state: ExploredState;
};

/** A state of the page, in the words of the options of `bentpipe run`. */
export type ExploredState = {
  /** The scenario, as `--scenario` has it. */
  scenario: string;
  /** Changes of the scenario, each as `--set` has it. */
  settings: string[];
  /** One or two, side by side. */
  senders: ExploredSender[];
  /** Trials of each sender, as `--iterations` has it: the first is drawn, all of them are the band. */
  seeds: number;
  /** The seed of all randomness, as `--seed` has it. */
  seed: number;
};

/** A sender: what is transferred, by whom, and what is between. */
export type ExploredSender = {
  /** As `--client` has it. */
  client: string;
  /** As `--server` has it. */
  server: string;
  /** As `--treatment` has it. */
  treatment: string;
  /** As `--workload` has it. */
  workload: string;
  /** As `--protocol` has it, of pages and live streams; empty: not given. */
  protocol: string;
};

/** What the server says. Keys that do not belong to its kind are null. */
export type Reply = {
  /** The number of this format, as at the top of this page. */
  format: number;
  /** The request that it answers; 0 before any. */
  number: number;
  /** Its kind. */
  kind: ReplyKind;
  /** The sender that it is about, from 0. Null it is about both. */
  sender: number | null;
  /** What there is to choose from. Null of other kinds than `offer`. */
  offer: Offer | null;
  /** The path that the state has. Null of other kinds than `path`. */
  path: PathOfState | null;
  /** A trial that has ended. Null of other kinds than `trial`. */
  trial: ExploredTrial | null;
  /** What the seeds so far have in common. Null of other kinds than `band`. */
  band: Band | null;
  /** What went wrong. Null of other kinds than `problem`. */
  problem: Problem | null;
};

/** What there is to choose from, and the state to begin with. */
export type Offer = {
  /** The version of Bentpipe. */
  version: string;
  /** The state that the command line asked for. */
  state: ExploredState;
  /** The scenarios. */
  scenarios: Choice[];
  /** The stacks that can be started in virtual time. */
  stacks: StackChoice[];
  /** What can stand between the ends. */
  treatments: Choice[];
  /** Some of what can be transferred. */
  workloads: Choice[];
};

/** Something to choose. */
export type Choice = {
  /** Its name, as options have it. */
  name: string;
  /** What it is. */
  title: string;
};

/** A stack. */
export type StackChoice = {
  /** Its name. */
  name: string;
  /** `client`, `server`, or both. */
  roles: string[];
  /** Its options. */
  options: StackOption[];
};

/** An option of a stack. */
export type StackOption = {
  /** Its name, as in `cc`. */
  name: string;
  /** What it is, in the words of the stack's `stack.toml`. */
  meaning: string;
  /** Single words among those that may be values: suggestions, no more. */
  values: string[];
};

/** The path of a state, and the commands that do the same. */
export type PathOfState = {
  /** Its name in records. */
  label: string;
  /** The scenario in full, as trials take it. */
  scenario: { [key: string]: Json };
  /** Its summary, as manifests have it. */
  summary: { [key: string]: Json };
  /** `bentpipe run …`, one or two of them: together they run these trials. */
  commands: string[];
  /** The command that opens this state. */
  again: string;
  /** The path as a scenario file. */
  file: string;
};

/** The result of a trial. */
export type ExploredTrial = {
  /** Its name, as in records. */
  trial: string;
  /** As in its record. */
  outcome: string;
  /** As in its record. */
  detail: string;
  /** As in its record. Null not all has arrived. */
  completion_s: number | null;
  /** As in its record. Null it has none. */
  goodput_bps: number | null;
  /** As in its record. Null not known. */
  share_of_limit: number | null;
  /** As in its record: of the same packets the same. */
  packet_log_hash: string;
  /** Plots, events and findings, as the script of a trial in a report has them; empty if there was no connection. */
  trace: { [key: string]: Json };
};

/** The range of a sender's trials, over their seeds, and their results. */
export type Band = {
  /** How many have ended. */
  trials: number;
  /** Of those that succeeded, in order of size. */
  completion_s: number[];
  /** How many did not succeed. */
  failed: number;
  /** One for each plot that has a band. */
  ranges: BandRange[];
};

/** The least and the greatest value of all trials over time: between two times, all trials are between these. */
export type BandRange = {
  /** The kind of the plot. */
  kind: string;
  /** The times. */
  times: number[];
  /** The least value from the time before to the one after, in the unit of the plot. */
  low: number[];
  /** The greatest. */
  high: number[];
};

/** What went wrong, in plain words. */
export type Problem = {
  /** What it was. */
  error: string;
  /** What to do about it; may be empty. */
  hint: string;
};
