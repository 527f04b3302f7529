// How any number of the records is distributed: over all trials that are wanted, and by what they have in common.

import { axis, figure, tooltip, type Figure, type Option, type Theme } from "../chart";
import { ecdf } from "../distribution";
import { breakable, h } from "../dom";
import { controls, filter, list, redrawing, table, type Control, type Drawn } from "./controls";
import { frame } from "./frame";
import type { Measure, Site } from "./model";
import { measureOf, shown } from "./names";
import { quantile, summary, trials, type Summary, type Trials } from "./samples";

/** Colours tell up to this many groups apart; of more, only the whole has a curve. */
const COLOURS = 8;
/** Corners of a curve; of more values every so manieth is one. */
const CORNERS = 600;
/** Groups that a chart has room for; the table has all. */
const ROWS = 40;

const PARTS = ["scenario", "workload", "treatment", "client", "server"] as const;
type Part = (typeof PARTS)[number] | "run" | "testbed" | "outcome";

interface Group {
  name: string;
  trials: number;
  failed: number;
  values: Float64Array; // ascending
  summary: Summary | null;
}

interface Wanted {
  column: Control;
  by: Control;
  which: Control;
  filters: [Part, Control][];
}

export function distributionsPage(root: HTMLElement, site: Site): void {
  const result = h("div", {});
  const draw = redrawing(result, () => content(site, wanted));
  const titles = site.columns.map((column): [string, string] => [column, column]);
  const first = ["goodput_bps", "completion_s"].find((column) => site.columns.includes(column));
  const ordered = [...titles].sort(([a], [b]) => Number(b === first) - Number(a === first));
  const names = (part: (typeof PARTS)[number]) => site.cells.map((cell) => cell[part]).sort();
  const wanted: Wanted = {
    column: list("Column", "column", ordered, draw),
    by: list("By", "by", BY, draw),
    which: list("Trials", "trials", WHICH, draw),
    filters: [
      [
        "run",
        filter(
          "Run",
          "run",
          site.runs.map(({ name }) => name),
          draw,
        ),
      ],
      ...PARTS.map((part): [Part, Control] => [part, filter(capital(part), part, names(part), draw)]),
      ["testbed", filter("Testbed", "testbed", site.testbeds, draw)],
    ],
  };
  const several = wanted.filters.filter(([, { element }]) => element.querySelectorAll("option").length > 2);
  frame(
    root,
    site,
    "distributions",
    "",
    controls(wanted.column, wanted.by, wanted.which),
    controls(...several.map(([, control]) => control)),
    result,
  );
  draw();
}

const BY: [string, string][] = [
  "server",
  "client",
  "scenario",
  "workload",
  "treatment",
  "run",
  "testbed",
  "outcome",
].map((part) => [part, part]);
const WHICH: [string, string][] = [
  ["", "that succeeded"],
  ["all", "all"],
];

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

async function content(site: Site, wanted: Wanted): Promise<Drawn> {
  if (site.columns.length === 0) return { nodes: [h("p", {}, "No trial has a number.")] };
  const all = await trials(site, wanted.column.value());
  const groups = grouped(site, all, wanted);
  const whole = merged(groups);
  const measure = measureOf(site, wanted.column.value(), whole.summary?.max ?? 0);
  const without = whole.trials - whole.values.length;
  const said =
    `${measure.title} (${measure.column}): ${whole.values.length} values in ${whole.trials} trials` +
    `${without > 0 ? `, ${without} have none` : ""}.`;
  if (!whole.summary) return { nodes: [h("p", { class: "said" }, said)] };
  const by = wanted.by.value();
  const figures = charts(groups, whole, measure, by);
  return {
    nodes: [
      h("p", { class: "said" }, said),
      h("div", { class: "pair-of-charts" }, ...figures.map(({ element }) => element)),
      h("h2", {}, `By ${by}`),
      marginals(groups, whole, measure, by),
    ],
    start: () => figures.forEach((one) => one.start()),
  };
}

/** The name of a trial's group, and whether it is wanted. */
function grouped(site: Site, all: Trials, { by, which, filters }: Wanted): Group[] {
  const part = by.value() as Part;
  const active = filters.filter(([, control]) => control.value() !== "");
  const [ok, unsupported] = ["ok", "unsupported"].map((name) => site.outcomes.indexOf(name));
  const found = new Map<string, { trials: number; failed: number; values: number[] }>();
  for (let i = 0; i < all.count; i++) {
    const outcome = all.codes.outcome[i]!;
    if (active.some(([key, control]) => nameOf(site, all, i, key) !== control.value())) continue;
    const name = nameOf(site, all, i, part);
    const group = found.get(name) ?? { trials: 0, failed: 0, values: [] };
    found.set(name, group);
    if (outcome !== ok && outcome !== unsupported) group.failed++;
    if (outcome !== ok && which.value() === "") continue;
    group.trials++;
    if (!Number.isNaN(all.values[i]!)) group.values.push(all.values[i]!);
  }
  return [...found]
    .map(([name, { trials: count, failed, values }]) => ({
      name,
      trials: count,
      failed,
      values: Float64Array.from(values).sort(),
      summary: summary(values),
    }))
    .sort((a, b) => (part === "run" ? 0 : a.name.localeCompare(b.name)));
}

function nameOf(site: Site, { codes }: Trials, i: number, part: Part): string {
  if (part === "run") return site.runs[codes.run[i]!]!.name;
  if (part === "testbed") return site.testbeds[codes.testbed[i]!]!;
  if (part === "outcome") return site.outcomes[codes.outcome[i]!]!;
  return site.cells[codes.cell[i]!]![part];
}

function merged(groups: Group[]): Group {
  const sum = (of: (group: Group) => number) => groups.reduce((total, group) => total + of(group), 0);
  const values = new Float64Array(sum((group) => group.values.length));
  let place = 0;
  for (const group of groups) {
    values.set(group.values, place);
    place += group.values.length;
  }
  values.sort();
  return {
    name: "all",
    trials: sum((group) => group.trials),
    failed: sum((group) => group.failed),
    values,
    summary: summary(values),
  };
}

function charts(groups: Group[], whole: Group, measure: Measure, by: string): Figure[] {
  const known = groups.filter((group) => group.summary);
  const drawn = known.slice(0, ROWS);
  const single = known.length <= COLOURS ? known : [];
  const key = (name: string, colour: string) =>
    h("span", { class: "key", style: `--key:var(--${colour})` }, name);
  const legend = h(
    "p",
    { class: "legend" },
    key("all", "ink"),
    ...single.map(({ name }, i) => key(name, `series-${i + 1}`)),
  );
  const file = `${measure.column}-by-${by}`;
  const more = known.length > ROWS ? ` The first ${ROWS} of ${known.length}.` : "";
  return [
    figure(
      "Distribution",
      `${file}-ecdf`,
      {
        label: `Empirical distribution of ${measure.title} over ${whole.values.length} trials`,
        height: 320,
        option: (theme) => curvesOption(single, whole, measure, theme),
      },
      h("p", { class: "note" }, `Share of ${whole.values.length} trials with at most this value.`),
      legend,
    ),
    figure(
      `By ${by}`,
      `${file}-quartiles`,
      {
        label: `Least, quartiles, median and largest ${measure.title} by ${by}`,
        height: Math.max(320, 70 + drawn.length * 30),
        option: (theme) => quartilesOption(drawn, measure, theme),
      },
      h(
        "p",
        { class: "note" },
        `Thin from the least to the largest value, thick between the quartiles, a bar at the median.${more}`,
      ),
    ),
  ];
}

function curvesOption(single: Group[], whole: Group, measure: Measure, theme: Theme): Option {
  const curve = (group: Group, width: number, color: string) => ({
    type: "line",
    name: group.name,
    step: "end",
    showSymbol: false,
    data: corners(group.values).map(([x, share]) => [x * measure.factor, share * 100]),
    lineStyle: { width, color },
    emphasis: { disabled: true },
  });
  return {
    grid: { left: 62, right: 20, top: 14, bottom: 48 },
    tooltip: {
      ...tooltip(theme),
      trigger: "axis",
      formatter: (items: unknown) =>
        shares([whole, ...single], (items as { axisValue: number }[])[0]?.axisValue ?? 0, measure),
    },
    xAxis: { ...axis(measure.title, theme), scale: true, axisPointer: { snap: false } },
    yAxis: { ...axis("share of trials, %", theme, true), min: 0, max: 100 },
    series: [
      ...single.map((group, i) => ({ ...curve(group, 1.25, theme.series[i] ?? theme.accent), z: 2 })),
      { ...curve(whole, 2.5, theme.ink), z: 3 },
    ],
  };
}

/** The corners of a distribution; of many values those of as many quantiles. */
export function corners(ascending: Float64Array): [x: number, share: number][] {
  if (ascending.length <= CORNERS) return [[ascending[0] ?? 0, 0], ...ecdf([...ascending])];
  return Array.from({ length: CORNERS + 1 }, (_, i): [number, number] => [
    quantile(ascending, i / CORNERS),
    i / CORNERS,
  ]);
}

function shares(groups: Group[], value: number, measure: Measure): HTMLElement {
  const lines = groups.map(({ name, values }) => {
    const below = values.filter((one) => one * measure.factor <= value).length;
    return values.length > 0 && h("div", {}, `${name}: ${((100 * below) / values.length).toFixed(0)}\u202f%`);
  });
  return h("div", {}, h("b", {}, `at most ${value.toFixed(measure.digits)}`), ...lines);
}

function quartilesOption(groups: Group[], measure: Measure, theme: Theme): Option {
  const at = (of: (one: Summary) => number) =>
    groups.map((group, i) => [of(group.summary!) * measure.factor, i]);
  const bars = (
    from: (one: Summary) => number,
    to: (one: Summary) => number,
    width: number,
    opacity: number,
  ) => ({
    type: "line",
    silent: true,
    showSymbol: false,
    lineStyle: { width, color: theme.accent, opacity, cap: "butt" },
    data: groups.flatMap(({ summary: one }, i) => [
      [from(one!) * measure.factor, i],
      [to(one!) * measure.factor, i],
      [null, null],
    ]),
  });
  return {
    grid: { left: 8, right: 20, top: 14, bottom: 30, containLabel: true },
    tooltip: {
      ...tooltip(theme),
      trigger: "item",
      formatter: (item: unknown) => tip(groups[(item as { dataIndex: number }).dataIndex], measure),
    },
    xAxis: { ...axis(measure.title, theme), scale: true },
    yAxis: {
      ...axis("", theme, true),
      inverse: true,
      min: -0.5,
      max: groups.length - 0.5,
      interval: 0.5,
      splitLine: { show: false },
      axisLabel: {
        color: theme.ink,
        fontSize: 12,
        formatter: (place: number) => (Number.isInteger(place) ? shorten(groups[place]?.name ?? "") : ""),
      },
    },
    series: [
      {
        ...bars(
          (one) => one.min,
          (one) => one.max,
          1.5,
          1,
        ),
        name: "range",
      },
      {
        ...bars(
          (one) => one.quarter,
          (one) => one.threeQuarters,
          11,
          0.55,
        ),
        name: "quartiles",
      },
      {
        type: "scatter",
        name: "median",
        symbol: "rect",
        symbolSize: [4, 18],
        itemStyle: { color: theme.ink },
        data: at((one) => one.median),
        z: 4,
      },
    ],
  };
}

/** Names that differ often do so at their ends. */
function shorten(name: string): string {
  return name.length > 28 ? `${name.slice(0, 13)}…${name.slice(-14)}` : name;
}

function tip(group: Group | undefined, measure: Measure): HTMLElement | string {
  if (!group?.summary) return "";
  const { min, quarter, median, threeQuarters, max } = group.summary;
  const line = (name: string, value: number) => h("div", {}, `${name} ${shown(measure, value)}`);
  return h(
    "div",
    {},
    h("b", {}, `${group.name}: ${group.values.length} values`),
    line("least", min),
    line("a quarter below", quarter),
    line("median", median),
    line("a quarter above", threeQuarters),
    line("largest", max),
  );
}

/** The table of the groups and of all together. */
function marginals(groups: Group[], whole: Group, measure: Measure, by: string): HTMLElement {
  const rows = [...groups, whole].map((group) => {
    const { min, quarter, median, threeQuarters, max, mean } = group.summary ?? NONE;
    const cells = [min, quarter, median, threeQuarters, max, mean].map((value) =>
      h("td", {}, shown(measure, value)),
    );
    return h(
      "tr",
      { class: group === whole ? "whole" : null },
      h("th", { scope: "row" }, breakable(group.name)),
      h("td", {}, String(group.trials)),
      h("td", { class: group.failed ? "failure" : "" }, String(group.failed)),
      h("td", {}, String(group.values.length)),
      ...cells,
    );
  });
  const heads = [by, "trials", "failed", "values", "min", "25 %", "median", "75 %", "max", "mean"];
  return table(`${measure.title} by ${by}`, heads, rows);
}

const NONE = { min: null, quarter: null, median: null, threeQuarters: null, max: null, mean: null };
