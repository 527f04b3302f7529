// The result matrix: rows are clients, columns are servers.

import { properties } from "./colour";
import { breakable, h, type Child } from "./dom";
import { decimals, duration, mbits, NO_GOODPUT, percent } from "./format";
import type { Cell, Margin, Matrix } from "./model";
import { arrived, frames } from "./frames";
import { live, played } from "./live";
import { loadTime, page } from "./page";
import { attach } from "./tooltip";

export type Order = "name" | "efficiency";

const OF_FILES = `Goodput in Mbit/s, mean ± standard deviation over the iterations that succeeded, with
  efficiency (goodput / forward rate); where a file is too small for one, the median time until all has arrived.`;

const OF_PAGES =
  "Page load time (PLT): from the client's first packet until every resource is there, the median over the iterations that succeeded.";

const OF_STREAMS =
  "The mean rate of what was played, and for how long nothing was, medians over the iterations that succeeded.";

const OF_FRAMES =
  "The age that 99 % of the frames did not exceed (–: more than 1 % were lost), and the share of those that were late or lost, medians over the iterations that succeeded.";

/** What is said of the cells of a workload. */
function caption(workload: string): string {
  if (page(workload)) return OF_PAGES;
  if (live(workload)) return OF_STREAMS;
  return frames(workload) ? OF_FRAMES : OF_FILES;
}

/** The table, inside the box that it scrolls in, with its caption below the box. */
export function matrixTable(matrix: Matrix, order: Order): HTMLElement {
  const margins = hasGoodput(matrix.workload);
  const [clients, servers] = [sorted(matrix.clients, order), sorted(matrix.servers, order)];
  const cells = new Map(matrix.cells.map((cell) => [pair(cell.client, cell.server), cell]));
  const head = h(
    "tr",
    {},
    h("th", { class: "corner" }, h("span", {}, "server →"), h("span", {}, "client ↓")),
    ...servers.map((server) => h("th", { scope: "col" }, breakable(server.name))),
    margins && h("th", { scope: "col", class: "margin" }, "client mean"),
  );
  const rows = clients.map((client) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, breakable(client.name)),
      ...servers.map((server) => h("td", {}, cellLink(cells.get(pair(client.name, server.name))))),
      margins && h("td", { class: "margin" }, marginValue(client)),
    ),
  );
  const foot = h(
    "tr",
    {},
    h("th", { scope: "row", class: "margin" }, "server mean"),
    ...servers.map((server) => h("td", { class: "margin" }, marginValue(server))),
    h("td", { class: "margin total" }, marginValue(matrix.total)),
  );
  const size = servers.length > 8 ? "matrix dense" : servers.length < 6 ? "matrix roomy" : "matrix middle";
  const note = h(
    "p",
    { class: "note" },
    caption(matrix.workload),
    " Select a cell to see its iterations.",
    matrix.total.cells_h3 > 0 && " h3: over HTTP/3; cells without this mark are over hq-interop.",
  );
  const table = h(
    "table",
    { class: size },
    h("thead", {}, head),
    h("tbody", {}, ...rows),
    margins && h("tfoot", {}, foot),
  );
  const box = h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": `Matrix of ${matrix.scenario}` },
    table,
  );
  return h("div", {}, box, note);
}

/** A key for a pair of names; names hold no NUL. */
function pair(client: string, server: string): string {
  return `${client}\0${server}`;
}

function sorted(margins: Margin[], order: Order): Margin[] {
  if (order === "name") return margins;
  return [...margins].sort((a, b) => (b.efficiency ?? -1) - (a.efficiency ?? -1));
}

function cellLink(cell: Cell | undefined): Child {
  if (!cell) {
    const isAwaited = document.body.dataset.live !== undefined;
    return h(
      "span",
      { class: "absent", title: isAwaited ? "not run yet" : "not run" },
      isAwaited ? "…" : "–",
    );
  }
  const link = h(
    "a",
    { class: `cell ${kind(cell)}`, href: `cells/${encodeURIComponent(cell.slug)}.html` },
    ...values(cell),
  );
  if (cell.efficiency !== null) link.setAttribute("style", properties(cell.efficiency));
  attach(link, cell);
  return link;
}

export function kind(cell: Cell): "measured" | "unsupported" | "failed" {
  if (cell.trials.some((trial) => trial.outcome === "ok")) return "measured";
  return cell.failures.every(([outcome]) => outcome === "unsupported") ? "unsupported" : "failed";
}

function values(cell: Cell): Child[] {
  if (kind(cell) === "unsupported") return [h("span", { class: "failures" }, "unsupported")];
  if (kind(cell) === "failed") return [failures(cell)];
  const { goodput_mean_bps: mean, goodput_deviation_bps: deviation } = cell;
  const places = decimals((mean ?? 0) / 1e6);
  const goodput =
    mean === null
      ? h("span", { class: "goodput", title: what(cell) ?? NO_GOODPUT }, h("b", {}, time(cell)))
      : h(
          "span",
          { class: "goodput" },
          h("b", {}, mbits(mean, places)),
          deviation !== null && ` ± ${mbits(deviation, places)}`,
        );
  const [stream, seen] = [played(cell), arrived(cell)];
  return [
    goodput,
    stream && h("span", { class: "efficiency" }, stream.stalls),
    seen && h("span", { class: "efficiency" }, seen.missed),
    cell.efficiency !== null && h("span", { class: "efficiency" }, percent(cell.efficiency)),
    cell.h3 && h("span", { class: "protocol" }, "h3"),
    cell.failures.length > 0 && failures(cell),
  ];
}

/** Whether a workload has a goodput: pages, live streams and frames have none. */
export function hasGoodput(workload: string): boolean {
  return page(workload) === null && live(workload) === null && frames(workload) === null;
}

/** What a cell shows in place of a goodput, if it is not the time until all has arrived. */
function what(cell: Cell): string | null {
  if (played(cell) !== null) return "rate of what was played";
  if (arrived(cell) !== null) return "age that 99 % of the frames did not exceed";
  return loadTime(cell) === null ? null : "page load time";
}

/** Where there is no goodput: what a stream played, or the median time until all has arrived. */
function time(cell: Cell): string {
  const stream = played(cell);
  if (stream !== null) return stream.rate;
  const seen = arrived(cell);
  if (seen !== null) return seen.age;
  const median = loadTime(cell) ?? cell.spreads.completion_s?.median;
  return median === undefined ? "–" : duration(median);
}

function failed(cell: Cell): number {
  return cell.failures.reduce((sum, [, count]) => sum + count, 0);
}

/** "2/10 failed: transfer_timeout"; with several reasons each has its count. */
function failures(cell: Cell): HTMLElement {
  const text = h(
    "span",
    { class: "failures" },
    h("b", {}, `${failed(cell)}/${cell.trials.length} failed:`),
    " ",
  );
  cell.failures.forEach(([outcome, count], i) => {
    const times = cell.failures.length > 1 ? `${count}×\u00a0` : "";
    text.append(i > 0 ? ", " : "", h("span", { class: "reason" }, times, breakable(outcome)));
  });
  return text;
}

function marginValue(margin: Margin): HTMLElement {
  const mixed = margin.cells_h3 > 0 && ` with ${margin.cells_h3} h3`;
  const title = `mean of the efficiencies of ${margin.cells_measured} of ${margin.cells} cells${mixed || ""}; ${margin.failed} of ${margin.trials} trials failed`;
  return h(
    "span",
    { class: "mean", title },
    h("b", {}, margin.efficiency === null ? "–" : percent(margin.efficiency)),
    mixed && h("span", { class: "protocol" }, mixed),
    margin.failed > 0 && h("span", { class: "failures" }, `${margin.failed}/${margin.trials} failed`),
  );
}

/** The colours of the cells, with their meaning. */
export function scale(): HTMLElement {
  const steps = Array.from({ length: 11 }, (_, i) => i / 10);
  return h(
    "p",
    { class: "scale" },
    "Efficiency ",
    ...steps.map((step) =>
      h("span", { class: "step", style: properties(step) }, (step * 10) % 5 ? "" : percent(step)),
    ),
    h("span", { class: "step failed" }, "all failed"),
  );
}

/** A map of the matrix in small squares that lead to its cells; `here` is the slug of the current one. */
export function miniature(matrix: Matrix, here: string): HTMLElement {
  const cells = new Map(matrix.cells.map((cell) => [pair(cell.client, cell.server), cell]));
  const rows = matrix.clients.map((client) =>
    h(
      "tr",
      {},
      ...matrix.servers.map((server) => h("td", {}, square(cells.get(pair(client.name, server.name)), here))),
    ),
  );
  return h(
    "table",
    {
      class: matrix.servers.length > 8 ? "miniature dense" : "miniature",
      "aria-label": "Other cells of this scenario",
    },
    h("tbody", {}, ...rows),
  );
}

/** What is said of a cell without a goodput. */
function unrated(cell: Cell): string {
  const shown = what(cell);
  return shown === null ? "no goodput" : `${shown} ${time(cell)}`;
}

function square(cell: Cell | undefined, here: string): Child {
  if (!cell) return null;
  const missing = kind(cell) === "measured" ? unrated(cell) : kind(cell);
  const value = cell.efficiency === null ? missing : percent(cell.efficiency);
  const name = `${cell.client} client, ${cell.server} server: ${value}`;
  return h("a", {
    class: kind(cell),
    href: `${encodeURIComponent(cell.slug)}.html`,
    title: name,
    "aria-label": name,
    "aria-current": cell.slug === here ? "page" : null,
    style: cell.efficiency === null ? null : properties(cell.efficiency),
  });
}
