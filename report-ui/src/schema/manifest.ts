// Manifest: generated from schemas/manifest.toml by `make schemas`.

import type { Json } from "../model";

/** The choice of trials that have the same random draws. */
export type Draws = "independent" | "common";

/** The choice of pairs: which clients meet which servers. */
export type Pairs = "all" | "self";

/** The choice of trials that leave a trace. */
export type Traces = "none" | "analysis" | "median" | "all";

/** The state of a run beside its records. */
export type Manifest = {
  /** The number of this file's format, as at the top of this page. Absent in the first format. */
  format: number;
  /** The campaign's name; `run` where it is no campaign. */
  campaign: string;
  /** The subject of the campaign. */
  title: string;
  /** The plan, as the user wrote it: it decides what a resumed run does. */
  options: Options;
  /** The first command; resumed runs add to `resumed`. */
  command: string;
  /** When the run began. */
  started: string;
  /** Versions of Bentpipe, its commit, its tools, and under `stacks` those that the stacks reported. */
  versions: { [key: string]: Json };
  /** The machine: system, kernel, processor, cores. */
  host: { [key: string]: Json };
  /** Every scenario, by its label. */
  scenarios: { [key: string]: ScenarioState };
  /** The stacks that take part, by their names. */
  stacks: { [key: string]: StackState };
  /** The stacks that could not take part, and why. */
  left_out: { [key: string]: string };
  /** Combinations of the plan that are not applicable, and have no trials: an entry for each reason. */
  not_applicable: NotApplicable[];
  /** The folders of `--stacks` and BENTPIPE_STACKS. */
  stack_folders: string[];
  /** Where the command ran: relative paths in `options` and `command` count from there. */
  cwd: string;
  /** When the run ended. Null it has not. */
  finished?: string | null;
  /** When it was resumed. */
  resumed: string[];
  /** In real time: whether idle processors were kept from sleeping. */
  awake: boolean;
  /** `stack as role`, and its reaction to an unknown test case in place of ending with 127. */
  contract_breaches: { [key: string]: string };
  /** Trials that were executed more than once and gave different packets, though they must repeat. */
  disagreements: { [key: string]: string };
  /** The hosts of a cluster on which the run was executed, and how many trials each of them answered. */
  executed_on: { [key: string]: number };
};

/** The plan of a campaign, as a manifest keeps it ([campaigns](campaigns.md) explains the keys). */
export type Options = {
  /** The campaign's name. */
  name: string;
  /** Names, or paths to files. */
  scenarios: string[];
  /** The variants of stacks that are clients. */
  clients: string[];
  /** The variants of stacks that are servers. */
  servers: string[];
  /** The pairs of clients and servers. */
  pairs: Pairs;
  /** The subject of the campaign. */
  title: string;
  /** All randomness comes from it. */
  seed: number;
  /** Which trials have the same random draws. Absent in runs from before there was a choice. */
  draws: Draws;
  /** Trials of each cell. */
  iterations: number;
  /** In canonical form. */
  workloads: string[];
  /** Sets of further flows, in canonical form; each workload is run with each. */
  flows: string[];
  /** The treatments between the ends. */
  treatments: string[];
  /** Chains of proxies, in canonical form: each is a separate treatment. */
  pep: string[];
  /** Which trials leave a trace. */
  trace: Traces;
  /** `sim`, `emu` or `remote`; `runner` of what was imported, which cannot be continued. */
  testbed: string;
  /** The file of the real links that `scenarios` names ([links](links.md)); with `remote` alone. */
  link: string;
  /** The version of IP that the programs speak: 4 or 6. */
  ip: number;
  /** Traces come with the endpoints' qlogs. */
  qlog: boolean;
  /** `KEY=VALUE`, for every scenario. */
  set: string[];
  /** Keys of scenarios, and the values that they take in turn. */
  sweep: { [key: string]: string[] };
  /** The cells that are run, where they are not every combination of the keys above, which then have all that occurs in them: those of a check (`bentpipe check`). */
  cells: PlannedCell[];
};

/** A cell of a plan that names its cells. */
export type PlannedCell = {
  /** Its label. */
  scenario: string;
  /** In canonical form. */
  workload: string;
  /** As records have it. */
  treatment: string;
  /** The client: a variant of a stack. */
  client: string;
  /** The server: a variant of a stack. */
  server: string;
  /** Trials of it. */
  iterations: number;
};

/** A scenario, as it was when the run began. */
export type ScenarioState = {
  /** As a scenario file has it, resolved; what trials are given. */
  scenario: { [key: string]: Json };
  /** The summary of it on pages and in tables. */
  summary: { [key: string]: Json };
};

/** Combinations of scenario, workload, treatment, client and server that cannot be, by what `stack.toml` and `middlebox.toml` say, as a proxy of TCP with QUIC. */
export type NotApplicable = {
  /** Why, in words. */
  reason: string;
  /** The number of them. */
  combinations: number;
  /** The number of the plan's combinations in all. */
  of: number;
  /** The combinations, in every scenario. */
  cells: NotApplicableCell[];
};

/** A combination that cannot be, in whatever scenario. */
export type NotApplicableCell = {
  /** In canonical form. */
  workload: string;
  /** As records have it. */
  treatment: string;
  /** The client: a variant of a stack. */
  client: string;
  /** The server: a variant of a stack. */
  server: string;
};

/** A stack that takes part. */
export type StackState = {
  /** Its title. */
  title: string;
  /** Whether the same seed gives the same packets. */
  deterministic: boolean;
  /** The notes in its stack.toml. */
  notes: string;
  /** The inputs of its installation: the hash of its sources, checksums, tools, packages. Null where it needs no installation. */
  installation?: { [key: string]: Json } | null;
  /** The inputs again, each time that a resumed run found another installation. */
  resumed_with: { [key: string]: Json }[];
};
