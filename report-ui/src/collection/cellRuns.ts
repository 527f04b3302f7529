// One cell over its runs: a chart, and a table of the same.

import { axis, figure, tooltip, type Figure, type Option, type Theme } from "../chart";
import { breakable, h } from "../dom";
import { ratioText } from "./comparePage";
import { table } from "./controls";
import type { Measure, Site } from "./model";
import { cellTitle, shown, when } from "./names";
import { outcomes } from "./samples";
import { arrow, stackOf, type Point, type Series, type Step } from "./series";

/** More dots than that are not drawn for a run. */
const DOTS = 60;

export function cellFigure(site: Site, one: Series, measure: Measure): Figure {
  const known = one.points.filter((point) => point.summary);
  const { pair } = cellTitle(site, one.cell);
  return figure(
    measure.title,
    `${pair.replaceAll(/[^\w.=-]+/g, "-")}-${measure.column}`,
    {
      label: `${measure.title} of ${pair} over ${known.length} runs`,
      height: 300,
      option: (theme) => option(site, known, one.steps, measure, theme),
    },
    h(
      "p",
      { class: "note" },
      "Small dots are trials, large ones medians; lines reach from the least to the largest value.",
    ),
  );
}

function option(site: Site, known: Point[], steps: Step[], measure: Measure, theme: Theme): Option {
  const scaled = (value: number) => value * measure.factor;
  const names = known.map(({ run }) => site.runs[run]!.name);
  const medians = known.map((point, i) => {
    const step = steps[i - 1];
    return {
      value: [i, scaled(point.summary!.median)],
      symbol: step?.significant ? "diamond" : "circle",
      symbolSize: step?.significant ? 15 : 9,
      label: {
        show: step?.significant ?? false,
        formatter: step?.ratio ? arrow(step.ratio.value) : "",
        position: "top",
        color: theme.ink,
        fontWeight: 600,
      },
    };
  });
  const lines = known.flatMap((_, i) =>
    steps[i - 1]?.marks.length ? [{ xAxis: i - 0.5, name: steps[i - 1]!.marks.join("; ") }] : [],
  );
  return {
    grid: { left: 64, right: 20, top: 34, bottom: 40 },
    tooltip: {
      ...tooltip(theme),
      trigger: "item",
      formatter: (item: unknown) => {
        const { value } = item as { value: [number, number] };
        const point = known[Math.round(value[0])];
        return point ? tip(site, point, measure) : "";
      },
    },
    xAxis: {
      ...axis("", theme),
      min: -0.5,
      max: known.length - 0.5,
      interval: 0.5, // so that a label may stand at each run
      axisTick: { show: false },
      axisLabel: {
        color: theme.muted,
        fontSize: 11,
        hideOverlap: true,
        formatter: (place: number) => shorten(names[Math.round(place)] ?? "", place),
      },
      splitLine: { show: false },
    },
    yAxis: { ...axis(measure.title, theme, true), scale: true },
    series: [
      {
        type: "scatter",
        name: "trial",
        silent: true,
        symbolSize: 4,
        itemStyle: { color: theme.muted, opacity: 0.55 },
        data: known.flatMap(({ sample }, i) =>
          sample.values.slice(0, DOTS).map((value, k) => [i + spreadOut(k), scaled(value)]),
        ),
      },
      {
        type: "line",
        name: "range",
        silent: true,
        showSymbol: false,
        lineStyle: { color: theme.accent, width: 1.5 },
        data: known.flatMap(({ summary }, i) => [
          [i, scaled(summary!.min)],
          [i, scaled(summary!.max)],
          [i, null],
        ]),
      },
      {
        type: "line",
        name: "median",
        lineStyle: { color: theme.accent, width: 1.5 },
        itemStyle: { color: theme.accent },
        data: medians,
        z: 4,
        markLine: {
          symbol: "none",
          lineStyle: { color: theme.signal, type: "dashed", width: 1.5 },
          label: { show: true, formatter: "{b}", color: theme.ink, fontSize: 11, position: "end" },
          data: lines,
        },
      },
    ],
  };
}

/** Trials of a run stand a little beside each other. */
function spreadOut(k: number): number {
  return 0.06 + (k % 5) * 0.03;
}

function shorten(name: string, place: number): string {
  if (!Number.isInteger(place)) return "";
  return name.length > 16 ? `${name.slice(0, 15)}…` : name;
}

function tip(site: Site, { run, sample, summary }: Point, measure: Measure): HTMLElement {
  const of = site.runs[run]!;
  const line = `median ${shown(measure, summary!.median)}, from ${shown(measure, summary!.min)} to ${shown(measure, summary!.max)}`;
  return h(
    "div",
    {},
    h("b", {}, of.name),
    h("div", {}, when(of)),
    h("div", {}, line),
    h("div", {}, `${outcomes(sample)} ok`),
  );
}

/** The same as a table, with versions and what is said of each step. */
export function cellRuns(site: Site, one: Series, measure: Measure): HTMLElement {
  const { client, server } = site.cells[one.cell]!;
  const stacks = [...new Set([client, server].map(stackOf))];
  const rows = one.points.map((point) => {
    const run = site.runs[point.run]!;
    const step = one.steps.find(({ to }) => to === point.run);
    const versions = run.stacks
      .filter(({ name }) => stacks.includes(name))
      .map(({ name, version }) => `${name} ${version ?? "?"}`);
    const interval = step?.ratio?.interval(site.confidence);
    const of = (key: "min" | "median" | "max") => shown(measure, point.summary?.[key] ?? null);
    return h(
      "tr",
      {},
      h(
        "th",
        { scope: "row" },
        run.report ? h("a", { href: run.report }, breakable(run.name)) : breakable(run.name),
      ),
      h("td", { class: "time" }, when(run)),
      h(
        "td",
        { class: "words" },
        [...versions, ...(step?.marks ?? []).map((mark) => `(${mark})`)].join(", "),
      ),
      h("td", { class: "text" }, outcomes(point.sample)),
      h("td", {}, of("min")),
      h("td", {}, of("median")),
      h("td", {}, of("max")),
      h("td", {}, step?.ratio ? `${ratioText(step.ratio.value)}${step.significant ? " *" : ""}` : "–"),
      h("td", {}, interval ? interval.map(ratioText).join("–") : "–"),
      h("td", {}, step && step.adjustedP !== null ? pText(step.adjustedP) : "–"),
    );
  });
  const heads = [
    "run",
    { text: "started, UTC" },
    { text: "versions" },
    { text: "ok" },
    "min",
    "median",
    "max",
    "to the run before",
    "interval",
    "adjusted p",
  ];
  return table("Runs of the cell", heads, rows);
}

function pText(p: number): string {
  return p < 0.001 ? "< 0.001" : p.toFixed(3);
}
