// What ECharts draws of a plot: only the points that can be told apart in the window, on axes that fit them.

import { axis, type Option, type Theme } from "../chart";
import { FACES } from "./kinds";
import { band, marks } from "./marks";
import type { Event } from "../schema/analysis";
import type { Interruption, Kind, Series } from "./model";
import { dots, extent, firstFrom, line, roundAxis, strokes, type View } from "./thin";
import type { Span } from "./window";

/** The margins of every plot in pixels; the same for all, so that their time axes stand above each other. */
export const GRID = { left: 62, right: 18, top: 30, bottom: 42 };

export interface Shown {
  kind: Kind;
  series: Series[];
  events: Event[];
  interruptions: Interruption[];
  span: Span;
  /** What a finding names in this plot. */
  marked: Span | null;
  width: number;
}

export function option(shown: Shown, theme: Theme): Option {
  const face = FACES[shown.kind];
  const { min, max, interval } = valueAxis(shown);
  const width = Math.max(1, shown.width - GRID.left - GRID.right);
  const view = { ...shown.span, low: min, high: max, width, height: face.height - GRID.top - GRID.bottom };
  const vertical = axis(face.axis, theme, true) as { axisLabel: object };
  return {
    grid: { ...GRID, outerBoundsMode: "none" },
    xAxis: {
      ...axis("time since the client's first packet, s", theme),
      nameGap: 24,
      min: view.from,
      max: view.to,
      axisLabel: {
        color: theme.muted,
        fontSize: 11,
        showMinLabel: false,
        showMaxLabel: false,
        hideOverlap: true,
      },
    },
    yAxis: { ...vertical, min, max, interval, axisLabel: { ...vertical.axisLabel, formatter: face.tick } },
    series: [
      annotations(shown, view, theme),
      ...shown.series.map((one, i) => drawn(one, view, theme, i)),
      ...shown.series.filter(({ names }) => names).map((one) => labels(one, view, theme)),
    ],
  };
}

/** Space above the greatest value, as a share of the axis. */
const AIR = 0.02;

/** A level stretches the axis if the trace comes up to this part of it. */
const NEAR = 0.25;

/** The value axis that holds what the window shows of the trace. What lies beside it does not stretch it. */
function valueAxis({ kind, series, span }: Shown): { min: number; max: number; interval: number } {
  const { fromZero, height } = FACES[kind];
  // A window with nothing in it gets the axis of the whole trace.
  const found = reach(series, span) ?? reach(series, { from: -Infinity, to: Infinity }) ?? [0, 1];
  const low = fromZero ? 0 : found[0];
  const levels = series.filter(({ mark }) => mark === "level").map(({ values }) => values[0]!);
  const high = Math.max(found[1], ...levels.filter((level) => level * NEAR <= found[1]));
  return roundAxis(low, high + (high - low) * AIR, Math.max(3, height / 45));
}

/** The least and greatest value of the trace in a window; null if there is none. */
function reach(series: Series[], span: Span): [number, number] | null {
  let [low, high] = [Infinity, -Infinity];
  for (const { mark, times, values, tops } of series) {
    if (mark === "guide" || mark === "level" || mark === "limit" || mark === "pale") continue;
    const found = extent(times, values, span);
    const upper = tops ? extent(times, tops, span) : found;
    if (!found || !upper) continue;
    // The first ranges of ACKs reach down to packet 0; what matters is where they end.
    low = Math.min(low, mark === "ranges" ? upper[0] : found[0]);
    high = Math.max(high, upper[1]);
  }
  return low > high ? null : [low, high];
}

const FORMS = {
  dots: { form: "dot", size: 2.4 },
  early: { form: "dot", size: 5 },
  retransmission: { form: "diamond", size: 8 },
  loss: { form: "cross", size: 7 },
  tick: { form: "tick", size: 9 },
} as const;

function drawn(series: Series, view: View, theme: Theme, order: number): object {
  const { mark, times, values, tops, name } = series;
  const color = theme.of(series.colour);
  const common = { name, silent: true, animation: false, z: 2 + order, emphasis: { disabled: true } };
  switch (mark) {
    case "dots":
    case "early":
    case "retransmission":
    case "loss":
    case "tick":
      return { ...common, ...marks(dots(times, values, view), { ...FORMS[mark], color }) };
    case "ranges":
      return stroke(common, strokes({ times, low: values, high: tops ?? values }, view), {
        color,
        width: 1.2,
      });
    case "guide":
      return stroke(common, line(times, values, view), { color, width: 1.75 });
    case "level":
      return stroke(common, line(times, values, view), { color, width: 1.5, type: [7, 3] });
    case "band":
      return {
        ...common,
        z: 1,
        ...band(line(times, values, view), line(times, tops ?? values, view), color),
      };
    case "pinned":
      return stroke(common, line(times, values, view), { color, width: 1.5, type: [2, 3], opacity: 0.8 });
    case "pale":
      return stroke(common, line(times, values, view), { color, width: 1.25, opacity: 0.38 });
    case "steps":
    case "limit":
      return {
        ...stroke(common, line(times, values, view), {
          color,
          width: 1.5,
          type: mark === "limit" ? [5, 3] : "solid",
        }),
        step: "end",
      };
    case "line":
      return stroke(common, line(times, values, view), { color, width: 1.5 });
  }
}

function stroke(common: object, data: Float64Array, lineStyle: object): object {
  return { ...common, type: "line", ...flat(data), showSymbol: false, lineStyle };
}

/** Times and values in turn, as ECharts reads them without a copy. */
function flat(data: Float64Array): object {
  return { data, dimensions: ["time", "value"] };
}

/** Pixels that a letter of a label takes, about. */
const LETTER = 6.2;

/** How far above the plot the rows of labels stand, in pixels. */
const ROWS = [3, 14];

/** The least width of a band in pixels: one that is shorter is seen nevertheless. */
const BAND = 2;

function bands(interruptions: Interruption[], view: View, theme: Theme): object[] {
  const least = (BAND * (view.to - view.from)) / view.width;
  return interruptions
    .filter(({ from_s, to_s }) => to_s > view.from && from_s < view.to)
    .map(({ from_s, to_s }) => {
      const [from, to] = [Math.max(from_s, view.from), Math.min(Math.max(to_s, from_s + least), view.to)];
      return area({ from, to }, theme.muted, 0.3);
    });
}

function area({ from, to }: Span, color: string, opacity: number): object {
  return [{ xAxis: from, itemStyle: { color, opacity } }, { xAxis: to }];
}

/** Names beside a line where they begin to hold, if there is room for them. */
function labels(series: Series, view: View, theme: Theme): object {
  const perSecond = view.width / (view.to - view.from);
  const names = series.names ?? [];
  const data = names.flatMap(([begin, text], i) => {
    const [from, to] = [Math.max(begin, view.from), Math.min(names[i + 1]?.[0] ?? Infinity, view.to)];
    if ((to - from) * perSecond < text.length * LETTER) return [];
    const value = series.values[Math.max(0, firstFrom(series.times, from + 1e-6) - 1)] ?? view.low;
    const below = value > view.low + (view.high - view.low) * 0.85;
    return { value: [from, value], label: { formatter: text, offset: [2, below ? 9 : -9] } };
  });
  return {
    type: "scatter",
    name: `names: ${series.name}`,
    data,
    symbolSize: 0.01,
    silent: true,
    animation: false,
    z: 30,
    label: { show: true, position: "right", distance: 0, color: theme.of(series.colour), fontSize: 11 },
  };
}

/** Events as upright lines, and the part that a finding names. */
function annotations({ events, interruptions, marked }: Shown, view: View, theme: Theme): object {
  const perSecond = view.width / (view.to - view.from);
  const free = ROWS.map(() => -Infinity);
  const lines = events
    .filter(({ at_s }) => at_s >= view.from && at_s <= view.to)
    .map(({ name, at_s }) => {
      const text = words(name);
      const [at, length] = [(at_s - view.from) * perSecond, text.length * LETTER];
      // A label stands to the right of its line's top, or to the left where the plot ends.
      const right = at + length <= view.width;
      const row = free.findIndex((end) => (right ? at : at - length) > end);
      if (row >= 0) free[row] = (right ? at + length : at) + LETTER;
      const label = { show: row >= 0, formatter: text, align: right ? "left" : "right", distance: ROWS[row] };
      return { xAxis: at_s, label };
    });
  return {
    type: "line",
    name: "events",
    data: [],
    silent: true,
    animation: false,
    markLine: {
      silent: true,
      symbol: "none",
      animation: false,
      lineStyle: { color: theme.muted, width: 1, type: [4, 3] },
      label: { color: theme.muted, fontSize: 11, position: "end", distance: 4 },
      data: lines,
    },
    markArea: {
      silent: true,
      animation: false,
      data: [...bands(interruptions, view, theme), ...(marked ? [area(marked, theme.signal, 0.13)] : [])],
    },
  };
}

export function words(name: string): string {
  return name.replaceAll("_", " ");
}
