// How the efficiencies of a scenario are distributed: over all trials, and by server or client.

import { axis, figure, tooltip, type Figure, type Option, type Theme } from "./chart";
import { h } from "./dom";
import { percent } from "./format";
import type { Cell, Matrix, Trial } from "./model";

export type Role = "server" | "client";

/** Colours tell up to this many groups apart; beyond it all have one. */
const COLOURS = 8;

export interface Point {
  cell: Cell;
  trial: Trial;
  /** A failed trial counts as 0. */
  efficiency: number;
  failed: boolean;
}

/** Every trial with an efficiency: not those of pairs that do not support the test case, nor of a file that fits into
 * one flight. */
export function points(cells: Cell[]): Point[] {
  return cells.flatMap((cell) =>
    cell.trials
      .filter((trial) =>
        trial.outcome === "ok" ? trial.efficiency !== null : trial.outcome !== "unsupported",
      )
      .map((trial) => ({ cell, trial, efficiency: trial.efficiency ?? 0, failed: trial.outcome !== "ok" })),
  );
}

/** The empirical distribution function as the corners of its steps: share of values ≤ x, from 0 to 1. */
export function ecdf(values: number[]): [x: number, share: number][] {
  const sorted = [...values].sort((a, b) => a - b);
  const corners: [number, number][] = [];
  sorted.forEach((value, i) => {
    if (sorted[i + 1] !== value) corners.push([value, (i + 1) / sorted.length]);
  });
  return corners;
}

/** The end of an axis, in per cent, that shows all values, ratios from 0 to 1, without much room behind them. */
export function axisEnd(values: number[]): number {
  const largest = 100 * Math.max(0, ...values);
  return ENDS.find((end) => end >= largest) ?? 100;
}

const ENDS = [1, 2, 5, 10, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90, 100];

/** A level for each value such that no two values closer than `width` have the same: 0 first, then 1, -1, 2, -2. */
export function swarm(values: number[], width: number): number[] {
  const levels: number[] = [];
  const last: number[] = []; // the last value of each level, by rank
  const order = values.map((value, i) => ({ value, i })).sort((a, b) => a.value - b.value);
  for (const { value, i } of order) {
    const free = last.findIndex((before) => value - before >= width);
    const rank = free < 0 ? last.length : free;
    last[rank] = value;
    levels[i] = rank % 2 ? (rank + 1) / 2 : -rank / 2 || 0;
  }
  return levels;
}

/** Both charts of a scenario, grouped by a role. */
export function distribution(matrix: Matrix): Distribution {
  let by: Role = "server";
  const role = () => by;
  const all = points(matrix.cells);
  const keys = h("p", { class: "legend" }, ...legend(matrix, by));
  const rows = Math.max(matrix.clients.length, matrix.servers.length);
  const failures = all.filter((point) => point.failed).length;
  if (failures === all.length)
    return { figures: [], groupBy: () => undefined, nothing: nothing(all, matrix) };
  const unsupported = count(matrix, (trial) => trial.outcome === "unsupported");
  const silent = count(matrix, (trial) => trial.outcome === "ok" && trial.efficiency === null);
  const end = axisEnd(all.map((point) => point.efficiency));
  const range = ` The axis ends at ${end}\u202f%.`;
  const share = h(
    "p",
    { class: "note" },
    `Share of ${all.length} trials with at most this efficiency${failures > 0 ? `; ${failures} failed and count as 0` : ""}.`,
    unsupported > 0 && ` Left out: ${unsupported} unsupported.`,
    silent > 0 &&
      ` Left out: ${silent} without goodput, as the file fits into one flight or packets could not be decoded.`,
    range,
  );
  const strips = h(
    "p",
    { class: "note" },
    "Each dot a trial, ",
    h("b", { class: "cross" }, "×"),
    " a failed one, the bar the mean of those that succeeded. Equal trials stand above each other.",
    range,
  );
  const file = `${matrix.scenario}-efficiency`;
  const figures = [
    figure(
      "Distribution of efficiency",
      `${file}-ecdf`,
      {
        label: `Empirical distribution of efficiency over ${all.length} trials of ${matrix.scenario}`,
        height: 320,
        option: (theme) => ecdfOption(all, groups(matrix, role()), role(), theme),
      },
      share,
      keys,
    ),
    figure(
      "Efficiency of each trial",
      `${file}-trials`,
      {
        label: `Efficiency of each trial of ${matrix.scenario}, by server or client`,
        height: Math.max(320, 70 + rows * 38),
        option: (theme) => stripOption(all, matrix, role(), theme),
      },
      strips,
    ),
  ];
  return {
    figures,
    nothing: null,
    groupBy: (next) => {
      by = next;
      keys.replaceChildren(...legend(matrix, by));
      figures.forEach((one) => one.redraw?.());
    },
  };
}

export interface Distribution {
  figures: Figure[];
  groupBy: (role: Role) => void;
  /** What to say where there is nothing to draw. */
  nothing: string | null;
}

function count(matrix: Matrix, which: (trial: Trial) => boolean): number {
  return matrix.cells.reduce((sum, cell) => sum + cell.trials.filter(which).length, 0);
}

function nothing(all: Point[], matrix: Matrix): string {
  return all.length < matrix.total.trials
    ? `None of the ${matrix.total.trials} trials has an efficiency, so there is no distribution to draw.`
    : `All ${all.length} trials failed, so there is no distribution to draw.`;
}

/** The colours of the groups; beyond what colours can tell apart only the whole is drawn. */
function legend(matrix: Matrix, role: Role): HTMLElement[] {
  const names = groups(matrix, role);
  const key = (name: string, colour: string) =>
    h("span", { class: "key", style: `--key:var(--${colour})` }, name);
  return [
    key("all trials", "ink"),
    ...(names.length <= COLOURS ? names.map((name, i) => key(name, `series-${i + 1}`)) : []),
  ];
}

function groups(matrix: Matrix, role: Role): string[] {
  return (role === "server" ? matrix.servers : matrix.clients).map((margin) => margin.name);
}

function colour(theme: Theme, group: number, count: number): string {
  return (count <= COLOURS && theme.series[group]) || theme.accent;
}

function ecdfOption(all: Point[], names: string[], role: Role, theme: Theme): Option {
  const of = (name: string) =>
    all.filter((point) => point.cell[role] === name).map((point) => point.efficiency);
  const single = names.length <= COLOURS ? names.map((name): Sample => [name, of(name)]) : [];
  const end = axisEnd(all.map((point) => point.efficiency));
  const whole: Sample = ["all trials", all.map((point) => point.efficiency)];
  return {
    grid: { left: 62, right: 16, top: 14, bottom: 48 },
    tooltip: {
      ...tooltip(theme),
      trigger: "axis",
      formatter: (items: unknown) =>
        shares([whole, ...single], (items as { axisValue: number }[])[0]?.axisValue ?? 0),
    },
    xAxis: { ...axis("efficiency, %", theme), min: 0, max: end, axisPointer: { snap: false } },
    yAxis: { ...axis("share of trials, %", theme, true), min: 0, max: 100 },
    series: [
      ...single.map((sample, i) => ({
        ...curve(sample, end, { width: 1.25, color: colour(theme, i, names.length) }),
        z: 2,
      })),
      { ...curve(whole, end, { width: 2.5, color: theme.ink }), z: 3 },
    ],
  };
}

type Sample = [name: string, efficiencies: number[]];

function curve([name, efficiencies]: Sample, end: number, lineStyle: object): object {
  const corners = ecdf(efficiencies).map(([x, share]) => [x * 100, share * 100]);
  return {
    type: "line",
    name,
    step: "end",
    showSymbol: false,
    data: [[0, 0], ...corners, [end, 100]],
    lineStyle,
    emphasis: { disabled: true },
  };
}

/** The share of each sample at the pointer. */
function shares(samples: Sample[], efficiency: number): HTMLElement {
  const lines = samples.map(([name, efficiencies]) => {
    const below = efficiencies.filter((value) => value * 100 <= efficiency).length;
    return efficiencies.length > 0 && h("div", {}, `${name}: ${percent(below / efficiencies.length)}`);
  });
  return h("div", {}, h("b", {}, `efficiency at most ${percent(efficiency / 100)}`), ...lines);
}

function stripOption(all: Point[], matrix: Matrix, role: Role, theme: Theme): Option {
  const names = groups(matrix, role);
  const row = new Map(names.map((name, i) => [name, i]));
  const crowded = all.length > 500;
  const end = axisEnd(all.map((point) => point.efficiency));
  const offsets = stack(all, names, role, (end * (crowded ? 4 : 7)) / PLOT_WIDTH);
  const dots = all.map((point, i) => ({
    value: [point.efficiency * 100, (row.get(point.cell[role]) ?? 0) + (offsets[i] ?? 0)],
    point,
    symbol: point.failed ? CROSS : "circle",
    symbolSize: point.failed ? 8 : crowded ? 4 : 7,
    itemStyle: point.failed
      ? { color: theme.failure, opacity: 1 }
      : { color: colour(theme, row.get(point.cell[role]) ?? 0, names.length), opacity: crowded ? 0.5 : 0.8 },
  }));
  const margins = role === "server" ? matrix.servers : matrix.clients;
  const means = margins.flatMap((m, i) =>
    m.efficiency === null ? [] : [{ value: [m.efficiency * 100, i] }],
  );
  return {
    grid: { left: 8, right: 16, top: 14, bottom: 30, containLabel: true },
    tooltip: {
      ...tooltip(theme),
      trigger: "item",
      formatter: (item: unknown) => dotTooltip(item as DotItem),
    },
    xAxis: { ...axis("efficiency, %", theme), min: 0, max: end },
    yAxis: {
      ...axis("", theme, true),
      inverse: true,
      min: -0.5,
      max: names.length - 0.5,
      interval: 0.5,
      splitLine: { show: false },
      axisLabel: {
        color: theme.ink,
        fontSize: 12,
        formatter: (value: number) => (Number.isInteger(value) ? shorten(names[value] ?? "") : ""),
      },
    },
    series: [
      { type: "scatter", name: "trial", data: dots, z: 3, cursor: "pointer" },
      {
        type: "scatter",
        name: "mean",
        data: means,
        symbol: "rect",
        symbolSize: [2.5, 26],
        itemStyle: { color: theme.ink },
        silent: true,
        z: 2,
      },
    ],
  };
}

/** About the width of the plot in pixels; it only decides which dots are close enough to be stacked. */
const PLOT_WIDTH = 440;
/** The share of a row that dots fill, and the most between two of them. */
const ROW = 0.84;
const STEP = 0.17;

/** How far each point stands off the middle of its row, in rows; `width` is that of a dot, in per cent. */
function stack(all: Point[], names: string[], role: Role, width: number): number[] {
  const offsets: number[] = [];
  for (const name of names) {
    const members = all.flatMap((point, i) => (point.cell[role] === name ? [i] : []));
    const levels = swarm(
      members.map((i) => (all[i]?.efficiency ?? 0) * 100),
      width,
    );
    const step = Math.min(STEP, ROW / (2 * Math.max(1, ...levels.map(Math.abs))));
    members.forEach((i, k) => (offsets[i] = (levels[k] ?? 0) * step));
  }
  return offsets;
}

const CROSS =
  "path://M0,1.5 L1.5,0 L5,3.5 L8.5,0 L10,1.5 L6.5,5 L10,8.5 L8.5,10 L5,6.5 L1.5,10 L0,8.5 L3.5,5 Z";

function shorten(name: string): string {
  return name.length > 22 ? `${name.slice(0, 21)}…` : name;
}

interface DotItem {
  data: { point?: Point };
}

function dotTooltip({ data: { point } }: DotItem): HTMLElement | string {
  if (!point) return "";
  const { cell, trial } = point;
  const result = point.failed ? `${trial.outcome} ${trial.detail}` : percent(point.efficiency);
  return h(
    "div",
    {},
    h("b", {}, result),
    h("div", {}, `${cell.client} client, ${cell.server} server, iteration ${trial.iteration}`),
  );
}

/** Lead from a dot to the page of its cell. */
export function followDots(strips: Figure): void {
  strips.chart?.on("click", (event) => {
    const point = (event.data as { point?: Point } | undefined)?.point;
    if (point) location.href = `cells/${encodeURIComponent(point.cell.slug)}.html`;
  });
}
