// What the senders came to: their times, the linked plots, and the findings.

import { h } from "../dom";
import { median } from "../collection/samples";
import { duration, goodput, percent } from "../format";
import type { Band, ExploredTrial, Problem } from "../schema/explore";
import { findings } from "../trace/findings";
import { KINDS, read, type Trace, type TraceScript } from "../trace/model";
import { plots, type Plots } from "../trace/stage";
import { place } from "../trace/window";
import { choice } from "../choice";
import { COLOURS, overlay, pin, SENDERS, type Pinned } from "./overlay";

/** What a sender has come to so far. */
interface Sender {
  trial: ExploredTrial | null;
  trace: Trace | null;
  band: Band | null;
  problem: Problem | null;
  /** What is there is of a state before: its first trial still runs. */
  stale: boolean;
}

const NOTHING: Sender = { trial: null, trace: null, band: null, problem: null, stale: true };

export class Results {
  readonly element: HTMLElement;
  private readonly summaries = h("div", { class: "summaries" });
  private readonly stage = h("div", { class: "stage" });
  private readonly found = h("section", { class: "of-senders", "aria-label": "Findings" });
  private readonly spoken = h("p", { role: "status", class: "visually-hidden" });
  private readonly views = choice("Plots of", ["both", "A", "B"] as const);
  private view: "both" | "A" | "B" = "both";
  private senders: Sender[] = [];
  private names: string[] = [];
  private pinned: Pinned[] = [];
  private drawn: { plots: Plots; kinds: string } | null = null;

  constructor() {
    this.views.onChange((view) => {
      this.view = view;
      this.draw();
      this.listFindings();
    });
    this.element = h(
      "div",
      { class: "results" },
      this.summaries,
      this.spoken,
      h("div", { class: "views" }, this.views.element),
      this.stage,
      this.found,
    );
  }

  /** A new state is played: what is there stays, paler, until something new comes. */
  begin(names: string[]): void {
    this.names = names;
    const begun = { band: null, problem: null, stale: true };
    this.senders = names.map((_, i) => ({ ...(this.senders[i] ?? NOTHING), ...begun }));
    this.views.element.hidden = names.length < 2;
    this.summarise();
  }

  /** Show the first trial of a sender; false if it is not current any more once it can be drawn. */
  async trial(sender: number, trial: ExploredTrial, isCurrent: () => boolean): Promise<boolean> {
    const script = trial.trace as unknown as TraceScript;
    const trace = "plots" in script ? await read(script) : null;
    if (!isCurrent()) return false;
    this.change(sender, { trial, trace, stale: false });
    this.draw();
    this.listFindings();
    return true;
  }

  band(sender: number, band: Band): void {
    this.change(sender, { band });
    if (band.ranges.length > 0) this.draw();
  }

  /** What went wrong with a sender, or (null) with both. */
  problem(sender: number | null, problem: Problem): void {
    this.senders.forEach((_, i) => {
      if (sender === null || sender === i)
        this.change(i, { problem, trial: null, trace: null, stale: false });
    });
    this.draw();
    this.listFindings();
  }

  /** All trials have ended. */
  done(): void {
    this.spoken.textContent = this.senders
      .map((one, i) => `${SENDERS[i]}: ${one.problem?.error ?? inWords(one)}`)
      .join("; ");
  }

  get isPinned(): boolean {
    return this.pinned.length > 0;
  }

  pin(): void {
    this.pinned = this.isPinned ? [] : pin(this.senders);
    this.draw();
  }

  private change(sender: number, changes: Partial<Sender>): void {
    this.senders[sender] = { ...(this.senders[sender] ?? NOTHING), ...changes };
    this.summarise();
  }

  private summarise(): void {
    this.element.setAttribute("aria-busy", String(this.senders.some((one) => one.stale)));
    this.fade();
    this.summaries.replaceChildren(
      ...this.senders.map((one, i) =>
        h(
          "div",
          {
            class: `summary ${one.problem ? "failed" : ""} ${one.stale ? "stale" : ""}`,
            style: `--sender:var(--${COLOURS[i]})`,
          },
          h("h2", {}, h("b", {}, SENDERS[i]!), " ", h("small", {}, this.names[i] ?? "")),
          ...body(one),
        ),
      ),
    );
  }

  /** The sender that is shown alone. */
  private get alone(): Sender | null {
    return this.view === "both" ? null : (this.senders[this.view === "A" ? 0 : 1] ?? null);
  }

  /** Plots are pale while nothing in them is of the present state. */
  private fade(): void {
    this.stage.classList.toggle("stale", this.alone?.stale ?? this.senders.every((one) => one.stale));
  }

  private draw(): void {
    this.fade();
    const one = this.alone;
    const trace = one?.trace ?? overlay(this.senders, this.pinned);
    if (trace === null) {
      this.drawn?.plots.stop();
      this.drawn = null;
      this.stage.replaceChildren();
      return;
    }
    const kinds = trace.plots.map(({ kind }) => kind).join();
    if (this.drawn?.kinds === kinds) return this.drawn.plots.replace(trace);
    this.drawn?.plots.stop();
    const made = plots(trace, { behind: () => [], onWindow: () => undefined });
    this.drawn = { plots: made, kinds };
    this.stage.replaceChildren(made.element);
    made.start();
  }

  private listFindings(): void {
    const lists = this.senders.flatMap(({ trace }, i) =>
      trace
        ? [
            h(
              "div",
              {},
              h("h2", { style: `--sender:var(--${COLOURS[i]})` }, h("b", {}, SENDERS[i]!), " Findings"),
              this.linked(findings(trace)),
            ),
          ]
        : [],
    );
    this.found.replaceChildren(...lists);
  }

  /** Findings whose links lead into the plots, and leave the address as it is; none to a plot that is not drawn. */
  private linked(list: HTMLElement): HTMLElement {
    const kinds = this.drawn?.kinds.split(",") ?? [];
    for (const link of list.querySelectorAll("a")) {
      const plot = place(link.hash)?.plot;
      if (plot && !kinds.includes(plot)) link.replaceWith(link.textContent ?? "");
    }
    list.addEventListener("click", (event) => {
      const link = event.target instanceof Element && event.target.closest("a");
      const named = link && place(link.hash);
      if (!named) return;
      event.preventDefault();
      this.drawn?.plots.go(named.span, KINDS.find((kind) => kind === named.plot) ?? null);
    });
    return list;
  }
}

function body({ trial, band, problem, stale }: Sender): HTMLElement[] {
  if (problem) {
    return [
      h("p", { class: "failure", role: "alert" }, problem.error),
      h("p", { class: "note" }, problem.hint),
    ];
  }
  if (!trial) return [h("p", { class: "note" }, "running …")];
  const failed = trial.outcome !== "ok";
  return [
    h(
      "p",
      { class: "result" },
      failed
        ? h("span", { class: "failure" }, trial.outcome.replaceAll("_", " "))
        : h("b", {}, trial.completion_s === null ? "–" : duration(trial.completion_s)),
      ...(trial.goodput_bps === null ? [] : [h("span", {}, ` ${goodput(trial.goodput_bps)}`)]),
      ...(trial.share_of_limit === null || failed
        ? []
        : [
            h(
              "span",
              { title: "goodput, as a share of what an ideal sender reaches" },
              ` ${percent(trial.share_of_limit)} of the limit`,
            ),
          ]),
    ),
    ...(failed && trial.detail ? [h("p", { class: "note" }, trial.detail)] : []),
    h("p", { class: "note seeds" }, stale ? "running …" : band ? seeds(band) : "first seed"),
  ];
}

function seeds({ trials, completion_s: times, failed }: Band): string {
  if (trials < 2) return "first seed";
  const failures = failed > 0 ? `, ${failed} failed` : "";
  const [least, most] = [times[0], times.at(-1)];
  if (least === undefined || most === undefined) return `${trials} seeds${failures}`;
  const range =
    duration(least) === duration(most)
      ? `all ${duration(least)}`
      : `${duration(least)} to ${duration(most)}, median ${duration(median(times))}`;
  return `${trials} seeds: ${range}${failures}`;
}

function inWords({ trial, band }: Sender): string {
  if (!trial) return "no result";
  const came =
    trial.outcome === "ok" && trial.completion_s !== null ? duration(trial.completion_s) : trial.outcome;
  return band ? `${came}; ${seeds(band)}` : came;
}
