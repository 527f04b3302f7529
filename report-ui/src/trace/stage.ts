// The plots of one trial on one time axis: a window and a pointed time that all of them share.

import { h } from "../dom";
import { duration } from "../format";
import { FACES } from "./kinds";
import type { Kind, Series, Trace } from "./model";
import { plot, type Plot } from "./plot";
import { moved, within, zoomed, type Span } from "./window";

export interface Setting {
  /** What stands behind the series of a plot. */
  behind: (kind: Kind) => Series[];
  /** The reader has changed the window; null is the whole transfer. */
  onWindow: (span: Span | null) => void;
}

export interface Plots {
  element: HTMLElement;
  /** Watch which plots can be seen; only once the element is in the page. */
  start: () => void;
  stop: () => void;
  /** Show a window, or all; with a plot's name, mark the window there, show some more, and scroll to it. */
  go: (span: Span | null, kind: Kind | null) => void;
  /** Show another trace with the same kinds of plots; a window that is not the whole transfer stays. */
  replace: (trace: Trace) => void;
}

export function plots(trace: Trace, { behind, onWindow }: Setting): Plots {
  let whole = wholeOf(trace);
  let span = whole;
  let pointed: number | null = null;
  const shownWindow = h("output", { class: "window" });
  const set = (next: Span) => {
    span = within(next, whole);
    shownWindow.textContent = windowText(span);
    refresh.all();
  };
  const stage = {
    file: trace.trial,
    events: trace.events,
    interruptions: trace.interruptions,
    span: () => span,
    show: (next: Span) => {
      set(next);
      onWindow(span.from === whole.from && span.to === whole.to ? null : span);
    },
    reset: () => stage.show(whole),
    pointed: () => pointed,
    point: (time: number | null) => {
      pointed = time;
      all.forEach((one) => one.read());
    },
  };
  const all = trace.plots.map(({ kind, series }) => plot(kind, [...behind(kind), ...series], stage));
  const element = h(
    "div",
    {},
    h("div", { class: "stage-bar" }, buttons(stage, shownWindow), toggles(all)),
    ...all.map((one) => one.figure.element),
  );
  const refresh = refresher(all, element);
  const mark = (kind: Kind | null, marked: Span | null) =>
    all.forEach((one) => one.mark(one.kind === kind ? marked : null));
  shownWindow.textContent = windowText(whole);
  return {
    element,
    start: refresh.start,
    stop: refresh.stop,
    go: (next, kind) => {
      mark(kind, next);
      set(next ? (kind ? withAir(next) : next) : whole);
      const named = all.find((one) => one.kind === kind);
      if (!named) return;
      named.figure.element.hidden = false;
      named.figure.element.scrollIntoView({ block: "center" });
    },
    replace: (next) => {
      const isWhole = span.from === whole.from && span.to === whole.to;
      whole = wholeOf(next);
      stage.events = next.events;
      stage.interruptions = next.interruptions;
      next.plots.forEach(({ kind, series }, i) => all[i]!.replace([...behind(kind), ...series]));
      set(isWhole ? whole : span);
    },
  };
}

function wholeOf({ end_s }: Trace): Span {
  return { from: 0, to: Math.max(end_s * 1.02, 1e-3) };
}

/** A window in which what is named has air to both sides. */
function withAir(span: Span): Span {
  return zoomed(span, 1.3, (span.from + span.to) / 2);
}

function windowText({ from, to }: Span): string {
  return `${duration(from)} to ${duration(to)}`;
}

interface Movable {
  span: () => Span;
  show: (span: Span) => void;
  reset: () => void;
}

function buttons(stage: Movable, shownWindow: HTMLElement): HTMLElement {
  const button = (text: string, name: string, act: () => void) => {
    const made = h("button", { type: "button", "aria-label": name, title: name }, text);
    made.addEventListener("click", act);
    return made;
  };
  const zoom = (factor: number) => () => {
    const { from, to } = stage.span();
    stage.show(zoomed({ from, to }, factor, (from + to) / 2));
  };
  const move = (share: number) => () => stage.show(moved(stage.span(), share));
  return h(
    "div",
    { class: "choices", role: "group", "aria-label": "Time window" },
    h("span", {}, "Window ", shownWindow),
    button("←", "Earlier", move(-0.5)),
    button("→", "Later", move(0.5)),
    button("−", "Zoom out", zoom(2)),
    button("+", "Zoom in", zoom(0.5)),
    button("All", "The whole transfer", stage.reset),
  );
}

/** A button for each plot that hides and shows it. */
function toggles(all: Plot[]): HTMLElement {
  const made = all.map(({ kind, figure }) => {
    const button = h("button", { type: "button", "aria-pressed": "true" }, FACES[kind].title);
    button.addEventListener("click", () => (figure.element.hidden = !figure.element.hidden));
    // A link to a plot shows it too.
    new MutationObserver(() => button.setAttribute("aria-pressed", String(!figure.element.hidden))).observe(
      figure.element,
      { attributeFilter: ["hidden"] },
    );
    return button;
  });
  return h(
    "div",
    { class: "choices", role: "group", "aria-label": "Plots" },
    h("span", {}, "Plots"),
    ...made,
  );
}

/** What plots may take of a frame, in milliseconds; one is drawn in any case. */
const BUDGET = 8;

/**
 * Draws the plots that can be seen, the others when they come into view. What does not fit into a frame waits for
 * the next one: first the plot under the pointer, then those that have waited longest. `element` is busy so long.
 */
function refresher(
  all: Plot[],
  element: HTMLElement,
): { all: () => void; start: () => void; stop: () => void } {
  const [visible, started] = [new Set<Plot>(), new Set<Plot>()];
  const stale = new Set(all); // in the order in which they became so
  let asked = 0;
  const waiting = () => {
    const them = [...stale].filter((one) => visible.has(one));
    const pointed = them.find(({ figure }) => figure.host.matches(":hover"));
    return pointed ? [pointed, ...them.filter((one) => one !== pointed)] : them;
  };
  const draw = () => {
    asked = 0;
    const begin = performance.now();
    for (const one of waiting()) {
      if (performance.now() - begin > BUDGET) return ask();
      if (started.has(one)) one.redraw();
      else one.figure.start();
      started.add(one);
      stale.delete(one);
      one.read();
    }
    element.setAttribute("aria-busy", "false");
  };
  const ask = () => {
    asked ||= requestAnimationFrame(draw);
    element.setAttribute("aria-busy", "true");
  };
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        const one = all.find(({ figure }) => figure.element === target);
        if (one && isIntersecting) visible.add(one);
        else if (one) visible.delete(one);
      }
      ask();
    },
    { rootMargin: "40px" },
  );
  return {
    all: () => {
      all.forEach((one) => stale.add(one));
      ask();
    },
    start: () => {
      // Those in view at once: the observer first speaks a frame later.
      for (const one of all) {
        const { top, bottom } = one.figure.element.getBoundingClientRect();
        if (bottom > 0 && top < innerHeight) visible.add(one);
        observer.observe(one.figure.element);
      }
      draw();
    },
    stop: () => {
      observer.disconnect();
      cancelAnimationFrame(asked);
      started.forEach((one) => one.figure.stop?.());
    },
  };
}
