// The first page: each scenario with its matrix and distributions, then failures and the manifest.

import { anchor } from "./cellPage";
import { breakable, command, facts, h, type Child } from "./dom";
import { distribution, followDots } from "./distribution";
import { goodput, percent, seconds } from "./format";
import { brand, setting } from "./header";
import { matrixTable, scale, type Order } from "./matrix";
import type { Json, Margin, Matrix, Run } from "./model";
import { pathFacts } from "./path";
import { isEntries, tree } from "./tree";

export function indexPage(root: HTMLElement, run: Run): void {
  const sections = run.matrices.map((matrix) => scenario(run, matrix));
  root.replaceChildren(
    h("header", { class: "page" }, brand("index.html"), h("h1", {}, run.campaign, typeof run.manifest.title === "string" && run.manifest.title !== "" && h("small", {}, ` ${run.manifest.title}`)), runFacts(run), ...commandLine(run), ...warnings(run)),
    h("nav", { class: "contents", "aria-label": "Contents" }, ...contents(run)),
    h("main", {},
      run.matrices.length === 0 && h("p", {}, "No trial of this run has finished yet."),
      run.matrices.length > 0 && h("section", { id: "overview" }, h("h2", {}, "Overview"), overview(run)),
      ...sections.map((section) => section.element),
      failedTrials(run),
      h("section", { id: "manifest" }, h("h2", {}, "Manifest"), tree(run.manifest)),
    ),
    h("footer", {}, `Made by bentpipe ${run.version}.`),
  );
  for (const section of sections) section.start();
  showTarget();
}

/** The page is drawn after the browser has looked for the fragment of its address. */
function showTarget(): void {
  if (location.hash) document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
}

function runFacts(run: Run): HTMLElement {
  const { manifest } = run;
  const options = isEntries(manifest.options) ? manifest.options : {};
  const seed = manifest.seed ?? options.seed;
  const host = isEntries(manifest.host) ? manifest.host : {};
  const cores = typeof host.cores === "number" ? `${host.cores} cores` : null;
  const machine = [host.cpu, cores, host.kernel].filter((part) => part !== null && part !== undefined).map(String).join(", ");
  return facts(
    [
      ["seed", text(seed)],
      ["started", typeof manifest.started === "string" && instant(manifest.started)],
      ["took", between(manifest.started, manifest.finished)],
      ["trials", String(run.trials)],
      ["failed", h("span", { class: run.failed ? "failure" : "" }, String(run.failed))],
      ["machine", machine || null],
      ["bentpipe", isEntries(manifest.versions) ? text(manifest.versions.bentpipe) : null],
    ],
    "facts inline",
  );
}

function text(value: Json | undefined): Child {
  return value === null || value === undefined || typeof value === "object" ? null : String(value);
}

/** A UTC time without its fraction: 2026-03-01 10:20:30 UTC. What is no such time is left as it is. */
function instant(value: string): string {
  return value.replace(/^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(\.\d+)?(Z|\+00:00)$/, "$1 $2 UTC");
}

function between(from: Json | undefined, to: Json | undefined): string | null {
  if (typeof from !== "string" || typeof to !== "string") return null;
  const s = (Date.parse(to) - Date.parse(from)) / 1000;
  return Number.isFinite(s) ? (s < 100 ? seconds(s) : `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`) : null;
}

function commandLine({ manifest }: Run): HTMLElement[] {
  return typeof manifest.command === "string" && manifest.command !== "" ? [command(manifest.command)] : [];
}

/** What readers must know before they trust the matrix: stacks that take no part, and those that broke the contract. */
function warnings({ manifest }: Run): HTMLElement[] {
  const lines = (value: Json | undefined, text: (name: string, why: string) => string) =>
    isEntries(value) ? Object.entries(value).map(([name, why]) => h("p", { class: "warning" }, text(name, String(why)))) : [];
  return [
    ...lines(manifest.left_out, (name, why) => `${name} takes no part: ${why}`),
    ...lines(manifest.contract_breaches, (name, why) => `${name} breaks the endpoint contract: ${why}`),
  ];
}

function contents(run: Run): HTMLElement[] {
  const links = run.matrices.map((matrix) => h("a", { href: `#${anchor(run, matrix)}` }, name(run, matrix)));
  if (run.failed) links.push(h("a", { href: "#failures" }, "Failures"));
  return [...links, h("a", { href: "#manifest" }, "Manifest")];
}

/** A scenario's label; with its setting where the run has several matrices of it. */
function name(run: Run, matrix: Matrix): string {
  const alone = run.matrices.filter((one) => one.scenario === matrix.scenario).length === 1;
  return alone ? matrix.scenario : `${matrix.scenario} (${setting(matrix)})`;
}

/** The scenarios side by side: mean and maximum over the cells, as published measurements give them. */
function overview(run: Run): HTMLElement {
  const heads = ["scenario", "path", "mean goodput", "mean efficiency", "best goodput", "best efficiency", "cells without success", "failed trials"];
  const rows = run.matrices.map((matrix) => h("tr", {}, h("th", { scope: "row" }, h("a", { href: `#${anchor(run, matrix)}` }, name(run, matrix))), h("td", { class: "words" }, String(matrix.summary.title ?? "")), ...totals(matrix.total)));
  const table = h("table", { class: "overview" }, h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", { scope: "col" }, head)))), h("tbody", {}, ...rows));
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Overview" }, table);
}

function totals(total: Margin): HTMLElement[] {
  const mbit = (bps: number | null) => (bps === null ? "–" : goodput(bps));
  const share = (ratio: number | null) => (ratio === null ? "–" : percent(ratio));
  const bar = h("span", { class: "bar", style: `--share:${total.efficiency ?? 0}`, "aria-hidden": "true" });
  return [
    h("td", {}, mbit(total.goodput_bps)),
    h("td", {}, bar, share(total.efficiency)),
    h("td", {}, mbit(total.goodput_max_bps)),
    h("td", {}, share(total.efficiency_max)),
    h("td", {}, `${total.cells_failed} of ${total.cells}`),
    h("td", { class: total.failed ? "failure" : "" }, `${total.failed} of ${total.trials}`),
  ];
}

function scenario(run: Run, matrix: Matrix): { element: HTMLElement; start: () => void } {
  const roles = choice("Group by", ["server", "client"] as const);
  const orders = choice("Order by", ["name", "efficiency"] as const);
  const { figures, groupBy } = distribution(matrix);
  let table = matrixTable(matrix, "name");
  orders.onChange((order: Order) => {
    const next = matrixTable(matrix, order);
    table.replaceWith(next);
    table = next;
  });
  roles.onChange(groupBy);
  const { source, notes, ...summary } = matrix.summary;
  const element = h(
    "section",
    { id: anchor(run, matrix), class: "scenario" },
    h("h2", {}, name(run, matrix), typeof summary.title === "string" && h("small", {}, ` ${summary.title}`)),
    facts(pathFacts(summary), "facts inline"),
    typeof notes === "string" && notes !== "" && h("p", { class: "note source" }, notes),
    typeof source === "string" && source !== "" && h("p", { class: "note source" }, `Source: ${source}`),
    h("div", { class: "controls" }, scale(), orders.element),
    table,
    h("div", { class: "controls" }, h("h3", {}, "Distribution"), roles.element),
    h("div", { class: "pair-of-charts" }, ...figures.map((figure) => figure.element)),
  );
  const start = () => {
    for (const figure of figures) figure.start();
    if (figures[1]) followDots(figures[1]);
  };
  return { element, start };
}

/** Buttons of which one is down; the first at the beginning. */
function choice<T extends string>(label: string, values: readonly [T, ...T[]]): Choice<T> {
  const listeners: ((value: T) => void)[] = [];
  const buttons = values.map((value) => h("button", { type: "button", "aria-pressed": String(value === values[0]) }, value));
  values.forEach((value, i) =>
    buttons[i]?.addEventListener("click", () => {
      buttons.forEach((other, k) => other.setAttribute("aria-pressed", String(k === i)));
      listeners.forEach((listener) => listener(value));
    }),
  );
  const element = h("div", { class: "choices", role: "group", "aria-label": label }, h("span", {}, label), ...buttons);
  return { element, onChange: (listener) => listeners.push(listener) };
}

interface Choice<T> {
  element: HTMLElement;
  onChange: (listener: (value: T) => void) => void;
}

function failedTrials(run: Run): Child {
  const rows = run.matrices.flatMap((matrix) =>
    matrix.cells.flatMap((cell) =>
      cell.trials.filter((trial) => trial.outcome !== "ok").map((trial) =>
        h("tr", {},
          h("td", {}, name(run, matrix)),
          h("td", {}, cell.client),
          h("td", {}, cell.server),
          h("td", {}, h("a", { href: `cells/${encodeURIComponent(cell.slug)}.html` }, String(trial.iteration))),
          h("td", { class: "failure" }, breakable(trial.outcome)),
          h("td", { class: "words" }, trial.detail),
        ),
      ),
    ),
  );
  if (rows.length === 0) return null;
  const heads = ["scenario", "client", "server", "iteration", "outcome", "detail"].map((head) => h("th", { scope: "col" }, head));
  const table = h("table", { class: "failed-trials" }, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...rows));
  const box = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Failed trials" }, table);
  return h("section", { id: "failures" }, h("h2", {}, "Failures"), h("details", { open: rows.length <= 12 }, h("summary", {}, `${rows.length} of ${run.trials} trials failed`), box));
}
