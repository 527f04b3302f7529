// One plot of a trial: its chart, its keys that hide and show series, and what it has at the time pointed at.

import { figure, type Figure } from "../chart";
import { h } from "../dom";
import { duration } from "../format";
import { listen, type Target } from "./gestures";
import { FACES } from "./kinds";
import type { Event } from "../schema/analysis";
import type { Interruption, Kind, Mark, Series } from "./model";
import { GRID, option } from "./option";
import { firstFrom } from "./thin";
import type { Span } from "./window";

/** What all plots of a trial share. */
export interface Stage {
  file: string;
  events: Event[];
  interruptions: Interruption[];
  span: () => Span;
  show: (span: Span) => void;
  reset: () => void;
  pointed: () => number | null;
  point: (time: number | null) => void;
}

export interface Plot {
  kind: Kind;
  figure: Figure;
  /** Draw the window that the stage shows now. */
  redraw: () => void;
  /** Show what the plot has at the time pointed at. */
  read: () => void;
  mark: (span: Span | null) => void;
  /** Show other series from now on; what is hidden stays so. */
  replace: (series: Series[]) => void;
}

export function plot(kind: Kind, first: Series[], stage: Stage): Plot {
  const face = FACES[kind];
  const hidden = new Set<string>();
  let series = first;
  let marked: Span | null = null;
  const shown = () => series.filter((one) => !hidden.has(one.name));
  const reading = h("output", { class: "reading" });
  const keys = h("div", { class: "key-list" });
  const write = () =>
    keys.replaceChildren(...legend(series, hidden, face.show, () => (made.redraw?.(), read())));
  write();
  const drawing = {
    label: label(face.title, series),
    height: face.height,
    renderer: "canvas" as const,
    steady: true,
    csv: () => csv(series),
    option: (theme: Parameters<typeof option>[1]) =>
      option(
        {
          kind,
          series: shown(),
          events: stage.events,
          interruptions: stage.interruptions,
          span: stage.span(),
          marked,
          width: made.chart?.getWidth() ?? made.host.clientWidth,
        },
        theme,
      ),
  };
  const made = figure(
    face.title,
    `${stage.file}-${kind}`,
    drawing,
    h("p", { class: "note" }, face.note),
    h("div", { class: "keys" }, keys, reading),
  );
  const cursor = h("div", { class: "cursor", hidden: true });
  const read = () => {
    const at = stage.pointed();
    const { from, to } = stage.span();
    cursor.hidden = at === null || at < from || at > to;
    if (at === null) return reading.replaceChildren();
    const width = made.host.clientWidth - GRID.left - GRID.right;
    cursor.style.left = `${GRID.left + ((at - from) / (to - from)) * width}px`;
    reading.replaceChildren(`${duration(at)}: `, text(shown(), at, (to - from) / width, face.show));
  };
  const start = made.start;
  made.start = () => {
    start();
    made.host.tabIndex = 0;
    made.host.classList.add("trace-plot");
    made.host.append(cursor);
    listen(made.host, target(stage, made.host));
  };
  made.element.id = `plot-${kind}`;
  return {
    kind,
    figure: made,
    redraw: () => made.redraw?.(),
    read,
    mark: (span) => {
      marked = span;
      made.redraw?.();
    },
    replace: (next) => {
      const same = legendOf(next) === legendOf(series);
      series = next;
      drawing.label = label(face.title, series);
      made.host.setAttribute("aria-label", drawing.label);
      if (same) return; // a key that has the focus keeps it
      write();
    },
  };
}

function label(title: string, series: Series[]): string {
  return `${title} over time: ${[...new Set(series.map(({ name }) => name))].join(", ")}`;
}

/** What a legend shows. */
function legendOf(series: Series[]): string {
  return JSON.stringify(
    series.map(({ name, mark, colour, times, values }) => [
      name,
      mark,
      colour,
      COUNTED.has(mark) ? times.length : mark === "level" ? values[0] : 0,
    ]),
  );
}

/** All series as CSV: a line for each point. */
export function csv(series: Series[]): string {
  const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`;
  const lines = series.flatMap(({ name, times, values, tops }) =>
    Array.from(times, (time, i) => [quoted(name), time, values[i], tops?.[i] ?? ""].join(",")),
  );
  return ["series,time_s,value,top", ...lines, ""].join("\n");
}

function target(stage: Stage, host: HTMLElement): Target {
  const area = () => ({ left: GRID.left, width: Math.max(1, host.clientWidth - GRID.left - GRID.right) });
  return { ...stage, area };
}

/** Marks that are events, whose number is told. */
const COUNTED = new Set<Mark>(["loss", "retransmission", "tick"]);

/** A button for each name, with its mark; with the value that holds, or how many events there are. */
function legend(
  series: Series[],
  hidden: Set<string>,
  show: (value: number) => string,
  changed: () => void,
): HTMLElement[] {
  const names = [...new Set(series.map(({ name }) => name))];
  return names.flatMap((name) => {
    const mine = series.filter((one) => one.name === name);
    const [{ mark, colour, values }] = mine as [Series];
    const count = mine.reduce((sum, { times }) => sum + times.length, 0);
    const events = COUNTED.has(mark) ? ` (${count})` : "";
    const level = mark === "level" ? `, ${show(values[0]!)}` : "";
    const style = `--key:var(--${colour})`;
    const button = h(
      "button",
      {
        type: "button",
        class: `key ${mark}`,
        "aria-pressed": String(!hidden.has(name)),
        style,
        title: "Hide or show",
      },
      `${name}${events}${level}`,
    );
    button.addEventListener("click", () => {
      if (!hidden.delete(name)) hidden.add(name);
      button.setAttribute("aria-pressed", String(!hidden.has(name)));
      changed();
    });
    return button;
  });
}

/** How far from the pointer a dot is still meant, in pixels. */
const REACH = 6;

/** The values at a time: of a line the one that holds, of dots the nearest. */
function text(
  series: Series[],
  at: number,
  secondsPerPixel: number,
  show: (value: number) => string,
): string {
  const parts = series.flatMap((one) => {
    const value = reading(one, at, REACH * secondsPerPixel);
    if (value === null) return [];
    const named = name(one, at);
    return `${one.name} ${show(value)}${named ? ` (${named})` : ""}`;
  });
  return parts.join(" · ");
}

/** Marks that are looked at, not read. */
const PASSIVE = new Set<Mark>(["guide", "level", "pale", "band", "pinned"]);

export function reading({ mark, times, values, tops }: Series, at: number, reach: number): number | null {
  const next = firstFrom(times, at);
  if (mark === "line" || mark === "steps" || mark === "limit") return values[next - 1] ?? null;
  if (PASSIVE.has(mark)) return null;
  const before = at - (times[next - 1] ?? -Infinity);
  const after = (times[next] ?? Infinity) - at;
  if (Math.min(before, after) > reach) return null;
  return (tops ?? values)[before < after ? next - 1 : next] ?? null;
}

/** What goes with the value at a time; empty if nothing does. */
export function name({ names }: Series, at: number): string {
  return names?.findLast(([from]) => from <= at)?.[1] ?? "";
}
