// The section of a cell's page that shows the trace of one of its iterations.

import { h, type Child } from "../dom";
import { duration } from "../format";
import type { CellDetail, Iteration } from "../model";
import { companions } from "./companions";
import { findings } from "./findings";
import { load } from "./load";
import { KINDS, type Kind, type Trace } from "./model";
import { words } from "./option";
import { plots, type Plots } from "./stage";
import { fragment, place, type Place, type Span } from "./window";

/** The section, and what begins to load the trace when it comes near the window. */
export function traceSection(cell: CellDetail): { element: HTMLElement; start: () => void } {
  const traced = cell.iterations.filter((one) => one.trace?.script);
  const first = traced.find((one) => one.iteration === cell.median) ?? traced[0];
  const head = h("h2", {}, "Trace");
  if (!first) {
    return { element: h("section", { id: "trace" }, head, ...missing(cell)), start: () => undefined };
  }
  const body = h("div", {});
  const select = chooser(cell, traced);
  const element = h("section", { id: "trace" }, head, select, ...failures(cell), body);
  const player = show(body, cell);
  select.addEventListener("change", () => {
    const chosen = traced.find((one) => one.trial === chosenTrial(select));
    if (!chosen) return;
    const where = { trial: chosen.trial, plot: null, span: null };
    player(chosen, where);
    history.replaceState(null, "", fragment(where));
  });
  const follow = () => {
    const asked = place(location.hash);
    const named = traced.find((one) => one.trial === asked?.trial);
    if (!asked || !named) return false;
    choose(select, named.trial);
    player(named, asked);
    if (asked.plot === null) element.scrollIntoView();
    return true;
  };
  const start = () => {
    addEventListener("hashchange", follow);
    if (follow()) return;
    const near = new IntersectionObserver(
      (entries) => {
        if (!entries.some((entry) => entry.isIntersecting)) return;
        near.disconnect();
        if (body.childElementCount === 0) player(first, { trial: first.trial, plot: null, span: null });
      },
      { rootMargin: "600px" },
    );
    near.observe(element);
  };
  return { element, start };
}

function missing(cell: CellDetail): Child[] {
  return [
    ...failures(cell),
    !cell.iterations.some((one) => one.trace) &&
      h(
        "p",
        {},
        "No iteration of this cell has a trace.",
        cell.command !== "" && " The command under “Run it again” makes one of each.",
      ),
  ];
}

/** Why traces that exist cannot be shown. */
function failures(cell: CellDetail): HTMLElement[] {
  return cell.iterations.flatMap(({ iteration, trace }) =>
    typeof trace?.failure === "string"
      ? [
          h(
            "p",
            { class: "warning" },
            `The trace of iteration ${iteration} could not be read: ${trace.failure}`,
          ),
        ]
      : [],
  );
}

/** A list of the iterations that have a trace; plain words for a single one. */
function chooser(cell: CellDetail, traced: Iteration[]): HTMLElement {
  const several = cell.iterations.length > 1;
  const name = (one: Iteration) =>
    [
      `iteration ${one.iteration}`,
      several && one.iteration === cell.median && "median",
      one.outcome !== "ok" && one.outcome,
    ]
      .filter(Boolean)
      .join(", ");
  if (traced.length === 1) return h("p", { class: "note" }, `Of ${traced.map(name).join()}.`);
  const options = traced.map((one) => h("option", { value: one.trial }, name(one)));
  const list = h("select", {}, ...options);
  list.value = (traced.find((one) => one.iteration === cell.median) ?? traced[0])?.trial ?? "";
  return h("label", { class: "choice" }, "Of ", list);
}

function chosenTrial(chooser: HTMLElement): string | undefined {
  return chooser.querySelector("select")?.value;
}

function choose(chooser: HTMLElement, trial: string): void {
  const list = chooser.querySelector("select");
  if (list) list.value = trial;
}

/** Shows a trace in `body`; asked for the one that is there already, it goes to the place alone. */
function show(body: HTMLElement, cell: CellDetail): (one: Iteration, where: Place) => void {
  let shown: { trial: string; plots: Plots | null } | null = null;
  return (one, where) => {
    if (shown?.trial === one.trial && shown.plots) return go(shown.plots, where);
    shown?.plots?.stop();
    const current: typeof shown = { trial: one.trial, plots: null };
    shown = current;
    body.replaceChildren(h("p", { role: "status" }, "Reading the trace …"));
    load(one.trace?.script ?? "").then(
      (trace) => {
        if (shown !== current) return;
        const behind = (kind: Kind) => companions(kind, cell, one, trace);
        const made = plots(trace, { behind, onWindow: remember(one.trial) });
        current.plots = made;
        body.replaceChildren(...overview(trace), made.element);
        made.start();
        if (where.plot !== null || where.span !== null) go(made, where);
      },
      (error: unknown) => {
        if (shown !== current) return;
        shown = null;
        body.replaceChildren(h("p", { class: "warning" }, `The trace could not be shown: ${String(error)}`));
      },
    );
  };
}

function go(made: Plots, { plot, span }: Place): void {
  made.go(span, KINDS.find((kind): kind is Kind => kind === plot) ?? null);
}

function overview(trace: Trace): (Node | string)[] {
  const events = trace.events.map(({ name, at_s }) => `${words(name)} at ${duration(at_s)}`).join(", ");
  return [
    ...trace.notes.map((note) => h("p", { class: "warning" }, note)),
    h("h3", {}, "Findings"),
    findings(trace),
    h("h3", {}, "Plots"),
    h("p", { class: "note" }, events ? `Events: ${events}.` : "No event was recognised."),
    ...interrupted(trace),
    h(
      "p",
      { class: "note" },
      "Drag to zoom in, double-click for all; Ctrl or ⌘ with the wheel zooms, Shift with drag or wheel moves. " +
        "On a plot that has the focus: + − ← → 0, and Shift with ← → to read values.",
    ),
  ];
}

/** Interruptions that are told in words. */
const TOLD = 8;

function interrupted({ interruptions }: Trace): HTMLElement[] {
  if (interruptions.length === 0) return [];
  const told = interruptions.slice(0, TOLD).map(({ from_s, to_s, what, satellite }) => {
    const to = satellite === null ? "" : ` to ${satellite}`;
    return `${what}${to} at ${duration(from_s)} for ${duration(to_s - from_s)}`;
  });
  const more = interruptions.length - told.length;
  const text = [...told, ...(more > 0 ? [`and ${more} more`] : [])].join(", ");
  return [h("p", { class: "note" }, `Links send nothing where plots are shaded: ${text}.`)];
}

/** Keeps the window in the address, a moment after it has come to rest. */
function remember(trial: string): (span: Span | null) => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return (span) => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      history.replaceState(null, "", fragment({ trial, plot: null, span }));
    }, 250);
  };
}
