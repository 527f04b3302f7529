// The courses of a cell's iterations: received bytes and receive rate over time, against an ideal sender.

import { axis, figure, tooltip, type Figure, type Option, type Theme } from "./chart";
import { h, type Child } from "./dom";
import { bytes, duration, goodput } from "./format";
import type { CellDetail, Iteration } from "./model";

export type TimeSeries = [s: number, value: number][];

/** Bytes received by each step, from nothing at 0. */
export function received({ received_step_s: step, received_bytes: counts }: Iteration): TimeSeries {
  return [[0, 0], ...counts.map((count, i): [number, number] => [(i + 1) * step, count])];
}

/** The time over which a rate is taken where the axis ends at `until_s`: shorter ones show packets, not a rate. */
export function rateWindow(until_s: number): number {
  return Math.max(0.1, until_s / 150);
}

/** Bits per second over as many whole steps as make up `window_s`, at the middle of them. */
export function rates(iteration: Iteration, window_s: number): TimeSeries {
  const { received_step_s: step, received_bytes: counts } = iteration;
  const joined = Math.max(1, Math.ceil(window_s / step - 1e-9));
  const course: TimeSeries = [];
  for (let from = 0; from < counts.length; from += joined) {
    const to = Math.min(from + joined, counts.length);
    const gained = (counts[to - 1] ?? 0) - (counts[from - 1] ?? 0);
    course.push([((from + to) / 2) * step, (8 * gained) / ((to - from) * step)]);
  }
  return course;
}

/** Fewer windows than this say how packets came, not at which rate. */
const WINDOWS = 5;

/** Whether an iteration received for long enough to speak of its rate. */
export function hasRate(iterations: Iteration[]): boolean {
  const longest = Math.max(0, ...iterations.map((one) => one.transfer_s ?? receiving(one)));
  return longest >= WINDOWS * rateWindow(spans(iterations).ok);
}

/** From the first to the last step in which something came, in seconds. */
function receiving({ received_step_s: step, received_bytes: counts }: Iteration): number {
  const grows = counts.flatMap((count, i) => (count > (counts[i - 1] ?? 0) ? [i] : []));
  return ((grows.at(-1) ?? 0) - (grows[0] ?? 0)) * step;
}

/** The value of a course at a time, linear between its points; null where it has none. */
export function valueAt(course: TimeSeries, s: number): number | null {
  const next = course.findIndex(([time]) => time >= s);
  const [right, left] = [course[next], course[next - 1]];
  if (!right || s < 0) return null;
  if (!left || right[0] === s) return right[0] === s ? right[1] : null;
  return left[1] + ((right[1] - left[1]) * (s - left[0])) / (right[0] - left[0]);
}

/** When the last iteration of each kind ends: failed ones can last so long that nothing else is seen. */
export function spans(iterations: Iteration[]): { ok: number; all: number } {
  const end = (one: Iteration) => one.completion_s ?? one.received_bytes.length * one.received_step_s;
  const all = Math.max(0.1, ...iterations.map(end));
  const ok = Math.max(0, ...iterations.filter((one) => one.outcome === "ok").map(end));
  return { ok: ok || all, all };
}

/** Why there is no chart of the rate, or none at all; null if both are drawn. */
export function omission({ iterations }: CellDetail): string | null {
  if (!hasBytes(iterations)) return "No iteration received a byte, so there is no course to draw.";
  if (hasRate(iterations)) return null;
  const window = duration(rateWindow(spans(iterations).ok));
  return `The receive rate is left out: the transfer is shorter than ${WINDOWS} windows of ${window}, too short to speak of a rate over time.`;
}

function hasBytes(iterations: Iteration[]): boolean {
  return iterations.some((one) => one.received_bytes.some((count) => count > 0));
}

/** The charts for which there is something to draw; `until` gives the end of the time axis at each drawing. */
export function courses(cell: CellDetail, until: () => number): Figure[] {
  if (!hasBytes(cell.iterations)) return [];
  const bytes = receivedFigure(cell, until);
  return hasRate(cell.iterations) ? [bytes, rateFigure(cell, until)] : [bytes];
}

function receivedFigure(cell: CellDetail, until: () => number): Figure {
  const drawing = {
    label: `Bytes received over time by the ${cell.receiver} in ${cell.iterations.length} iterations`,
    height: 420,
    option: (theme: Theme) => receivedOption(cell, until(), theme),
  };
  return figure("Received bytes", `${fileName(cell)}-received`, drawing, legend(cell.ideal !== null, cell));
}

function rateFigure(cell: CellDetail, until: () => number): Figure {
  const drawing = {
    label: `Receive rate of the ${cell.receiver} over time in ${cell.iterations.length} iterations`,
    height: 240,
    option: (theme: Theme) => rateOption(cell, until(), theme),
  };
  const line =
    cell.rate_bps === null
      ? ""
      : ` The line is the ${direction(cell)} rate, which also carries IP and ${layers(cell).transport} headers.`;
  const window = duration(rateWindow(spans(cell.iterations).ok));
  return figure(
    "Receive rate",
    `${fileName(cell)}-rate`,
    drawing,
    h("p", { class: "note" }, `${layers(cell).transport} payload, mean over ${window} or more.${line}`),
  );
}

/** What the received bytes are the payload of, and whose headers are in it. */
function layers(cell: CellDetail): { transport: string; above: string } {
  const isTcp = cell.iterations.some((one) => one.transport === "tcp");
  return isTcp ? { transport: "TCP", above: "TLS" } : { transport: "UDP", above: "QUIC" };
}

function direction({ receiver }: CellDetail): string {
  return receiver === "client" ? "forward" : "return";
}

function fileName(cell: CellDetail): string {
  return `${cell.scenario}-${cell.client}-${cell.server}`;
}

function legend(hasIdeal: boolean, cell: CellDetail): HTMLElement {
  const entry = (kind: string, text: string): Child => h("span", { class: `key ${kind}` }, text);
  const failed = cell.iterations.some((one) => one.outcome !== "ok");
  const others = cell.iterations.some((one) => one.outcome === "ok" && one.iteration !== cell.median);
  const median = cell.iterations.find((one) => one.iteration === cell.median);
  const hint =
    `Received counts ${layers(cell).transport} payload, with ${layers(cell).above} headers and retransmissions: ` +
    "a complete transfer ends above the file size." +
    (hasIdeal ? " The ideal sender retransmits nothing and adds 5\u202f% for headers." : "");
  return h(
    "p",
    { class: "legend" },
    median && entry("median", others ? `median iteration (${median.iteration})` : label(cell, median)),
    others && entry("other", "other iterations"),
    failed && entry("failed", "failed"),
    hasIdeal && entry("ideal", "ideal sender, file with 5\u202f% headers"),
    cell.measured_bytes > 0 && entry("size", `file size, ${bytes(cell.measured_bytes)}`),
    h("span", { class: "note" }, hint),
  );
}

function label(cell: CellDetail, one: Iteration): string {
  const several = cell.iterations.filter((other) => other.outcome === "ok").length > 1;
  const remarks = [
    several && one.iteration === cell.median && "median",
    one.outcome !== "ok" && one.outcome,
  ].filter(Boolean);
  return `iteration ${one.iteration}${remarks.length ? ` (${remarks.join(", ")})` : ""}`;
}

/** One line for an iteration: the median one strong, others pale, failed ones dashed. */
function line(cell: CellDetail, one: Iteration, data: TimeSeries, theme: Theme): object {
  const strong = one.iteration === cell.median;
  const failed = one.outcome !== "ok";
  const style = failed
    ? { color: theme.failure, width: strong ? 2.25 : 1.25, type: "dashed", opacity: strong ? 1 : 0.55 }
    : { color: theme.accent, width: strong ? 2.75 : 1.25, opacity: strong ? 1 : 0.38 };
  return {
    type: "line",
    name: label(cell, one),
    data,
    showSymbol: false,
    sampling: "lttb",
    lineStyle: style,
    itemStyle: { color: style.color },
    z: strong ? 4 : 2,
    emphasis: { lineStyle: { ...style, color: theme.ink, width: 3, opacity: 1 } },
  };
}

/** A line that is no measurement. */
function guide(name: string, data: TimeSeries, style: object): object {
  return {
    type: "line",
    name,
    data,
    showSymbol: false,
    lineStyle: style,
    z: 3,
    silent: true,
    emphasis: { disabled: true },
  };
}

function receivedOption(cell: CellDetail, until: number, theme: Theme): Option {
  const perfect = cell.ideal;
  const all = cell.iterations.map((one) => ({ one, course: received(one) }));
  const names: Named[] = all.map(({ one, course }) => [label(cell, one), course]);
  if (perfect) names.push(["ideal sender, with headers", perfect]);
  return {
    ...frame(`${layers(cell).transport} payload received, MB`, until, theme, (value) => String(value / 1e6)),
    tooltip: readings(names, (value) => `${(value / 1e6).toFixed(2)}\u202fMB`, theme),
    series: [
      ...all.map(({ one, course }) => line(cell, one, course, theme)),
      ...(perfect ? [guide("ideal sender", perfect, { color: theme.signal, width: 2 })] : []),
      guide(
        "file size",
        [
          [0, cell.measured_bytes],
          [until, cell.measured_bytes],
        ],
        { color: theme.muted, width: 1, type: [2, 4] },
      ),
    ],
  };
}

function rateOption(cell: CellDetail, until: number, theme: Theme): Option {
  const limit = cell.rate_bps;
  const all = cell.iterations.map((one) => ({ one, course: rates(one, rateWindow(until)) }));
  const names: Named[] = all.map(({ one, course }) => [label(cell, one), course]);
  return {
    ...frame("Mbit/s", until, theme, (value) => String(value / 1e6)),
    tooltip: readings(names, goodput, theme),
    series: [
      ...all.map(({ one, course }) => line(cell, one, course, theme)),
      ...(limit === null
        ? []
        : [
            guide(
              `${direction(cell)} rate`,
              [
                [0, limit],
                [until, limit],
              ],
              { color: theme.signal, width: 1.5 },
            ),
          ]),
    ],
  };
}

function frame(y: string, until: number, theme: Theme, tick: (value: number) => string): Option {
  const vertical = axis(y, theme, true) as { axisLabel: object };
  return {
    grid: { left: 62, right: 18, top: 14, bottom: 48 },
    xAxis: {
      ...axis("time since the client's first packet, s", theme),
      min: 0,
      max: until,
      axisPointer: { triggerEmphasis: false },
      axisLabel: { color: theme.muted, fontSize: 11, showMaxLabel: false },
    },
    yAxis: { ...vertical, min: 0, axisLabel: { ...vertical.axisLabel, formatter: tick } },
  };
}

type Named = [name: string, series: TimeSeries];

/** The values of all courses at the pointer. They have steps of their own, so each is read between its points. */
function readings(named: Named[], show: (value: number) => string, theme: Theme): object {
  const formatter = (items: unknown) => {
    const at = (items as { axisValue: number }[])[0]?.axisValue ?? 0;
    const lines = named.map(([name, course]) => {
      const value = valueAt(course, at);
      return value !== null && h("div", {}, `${name}: ${show(value)}`);
    });
    return h("div", {}, h("b", {}, `at ${duration(at)}`), ...lines);
  };
  return {
    ...tooltip(theme),
    trigger: "axis",
    axisPointer: { snap: false, lineStyle: { color: theme.muted } },
    formatter,
  };
}
