// The page of a cell: all iterations of one client and one server over one path.

import type { Figure } from "./chart";
import { breakable, command, facts, h, type Child } from "./dom";
import { decimals, duration, goodput, maybe, mbits, NO_GOODPUT, percent } from "./format";
import { anchor, brand, setting } from "./header";
import { hops } from "./hops";
import { miniature } from "./matrix";
import type { Cell, CellDetail, Iteration, Matrix, Run } from "./model";
import { arrived, FRAME_MEASURES, frames } from "./frames";
import { live, MEASURES, played } from "./live";
import { page, timesOf, type PageTime } from "./page";
import { pathFacts } from "./path";
import { courses, omission, spans } from "./received";
import { traceSection } from "./trace/section";
import { fragment } from "./trace/window";
import { pageSection } from "./waterfall";

export function cellPage(root: HTMLElement, run: Run, detail: CellDetail): void {
  const matrix = run.matrices.find((one) => one.cells.some((cell) => cell.slug === detail.slug));
  const cell = matrix?.cells.find((one) => one.slug === detail.slug);
  if (!matrix || !cell) throw new Error(`data/run.js does not know the cell ${detail.slug}`);
  const range = timeRange(detail);
  const figures = courses(detail, range.until);
  const trace = traceSection(detail);
  root.replaceChildren(
    h(
      "header",
      { class: "page cell-head" },
      h(
        "div",
        {},
        h(
          "nav",
          { class: "crumbs", "aria-label": "Where you are" },
          brand("../index.html"),
          " / ",
          h("a", { href: "../index.html" }, run.campaign),
          " / ",
          h("a", { href: `../index.html#${encodeURIComponent(anchor(run, matrix))}` }, matrix.scenario),
        ),
        h("h1", {}, pair(detail)),
        h(
          "p",
          { class: "subtitle" },
          `${setting(detail)}, ${cell.h3 && !page(detail.workload) && !live(detail.workload) ? "with HTTP/3, " : ""}over ${detail.scenario}`,
          typeof matrix.summary.title === "string" && `: ${matrix.summary.title}`,
        ),
        otherTreatments(run, matrix, detail),
      ),
      matrix.cells.length > 1 && miniature(matrix, detail.slug),
    ),
    h(
      "main",
      {},
      keyFigures(cell, detail),
      pageSection(cell, detail),
      h(
        "section",
        {},
        h("h2", {}, "Course of the iterations"),
        figures.length > 0 && range.control,
        ...figures.map((figure) => figure.element),
        h("p", { class: "note" }, omission(detail)),
      ),
      trace.element,
      hops(detail),
      detail.command !== "" &&
        h(
          "section",
          {},
          h("h2", {}, "Run it again"),
          h("p", { class: "note" }, "Repeats these iterations with the same seeds and keeps their traces."),
          command(detail.command),
        ),
      h("section", {}, h("h2", {}, "Iterations"), iterationTable(detail, figures)),
      h(
        "section",
        { class: "columns" },
        h("div", {}, h("h2", {}, "Endpoints"), ...detail.endpoints.map(endpoint)),
        h("div", {}, h("h2", {}, "Path"), facts(pathFacts(matrix.summary), "facts")),
      ),
    ),
  );
  for (const figure of figures) figure.start();
  trace.start();
  // The page is drawn after the browser has looked for the fragment of its address.
  if (location.hash === "#trace") trace.element.scrollIntoView();
  range.onChange(() => figures.forEach((figure) => figure.redraw?.()));
}

function pair({ client, server }: CellDetail): HTMLElement {
  return h(
    "span",
    { class: "pair" },
    h("small", {}, "client"),
    " ",
    breakable(client),
    " ",
    h("small", {}, "server"),
    " ",
    breakable(server),
  );
}

/** Links to the same pair over the same path with something else in between; null if there is nothing else. */
function otherTreatments(run: Run, matrix: Matrix, detail: CellDetail): Child {
  const same = (one: Matrix) =>
    one !== matrix &&
    one.scenario === matrix.scenario &&
    one.workload === matrix.workload &&
    one.testbed === matrix.testbed;
  const links = run.matrices.filter(same).flatMap((one) => {
    const cell = one.cells.find(({ client, server }) => client === detail.client && server === detail.server);
    return cell
      ? [h("li", {}, h("a", { href: `${encodeURIComponent(cell.slug)}.html` }, one.treatment))]
      : [];
  });
  if (links.length === 0) return null;
  return h("div", { class: "others" }, "The same with ", h("ul", {}, ...links));
}

function keyFigures(cell: Cell, detail: CellDetail): HTMLElement {
  const { completion_s, handshake_s, share_of_limit } = cell.spreads;
  const failed = cell.failures.reduce((sum, [, count]) => sum + count, 0);
  const mean =
    cell.goodput_mean_bps === null
      ? "–"
      : meanAndDeviation(cell.goodput_mean_bps, cell.goodput_deviation_bps);
  const silent = cell.goodput_mean_bps === null && failed < cell.trials.length;
  const reasons = cell.failures.map(([outcome, count]) => `${count}× ${outcome}`).join(", ");
  const median = completion_s ? duration(completion_s.median) : "–";
  const ofFiles: [string, Child][] = [
    ["goodput, Mbit/s", h("b", { title: silent && NO_GOODPUT }, mean)],
    [
      "efficiency",
      h("b", { title: silent && NO_GOODPUT }, cell.efficiency === null ? "–" : percent(cell.efficiency)),
    ],
    ["median completion", h("b", {}, median)],
  ];
  const own: [string, Child][] = page(detail.workload)
    ? [["median page load", h("b", {}, median)]]
    : live(detail.workload)
      ? [
          ["played", h("b", {}, played(cell)?.rate ?? "–")],
          ["stalls", h("b", {}, played(cell)?.stalls ?? "–")],
        ]
      : frames(detail.workload)
        ? [
            ["age of 99 %", h("b", {}, arrived(cell)?.age ?? "–")],
            ["missed", h("b", {}, arrived(cell)?.missed ?? "–")],
          ]
        : ofFiles;
  return facts(
    [
      ...own,
      ["ideal completion", h("b", {}, maybe(detail.limit_s, duration))],
      ["share of limit", h("b", {}, share_of_limit ? percent(share_of_limit.median) : "–")],
      ["median handshake", h("b", {}, handshake_s ? duration(handshake_s.median) : "–")],
      [
        "failed",
        h(
          "b",
          { class: failed ? "failure" : "" },
          `${failed} of ${cell.trials.length}`,
          reasons && h("small", {}, ` ${reasons}`),
        ),
      ],
    ],
    "figures",
  );
}

/** A single success has no deviation. */
function meanAndDeviation(mean: number, deviation: number | null): string {
  const places = decimals(mean / 1e6);
  return mbits(mean, places) + (deviation === null ? "" : ` ± ${mbits(deviation, places)}`);
}

/** The end of the time axis: where the last success ends, or on demand the last failure. */
function timeRange(detail: CellDetail): {
  until: () => number;
  control: Child;
  onChange: (redraw: () => void) => void;
} {
  const { ok, all } = spans(detail.iterations);
  const limit = detail.limit_s ?? 0;
  const ends = { ok: Math.max(ok, limit) * 1.03, all: Math.max(all, limit) * 1.03 };
  if (ends.all < ends.ok * 1.2) return { until: () => ends.all, control: null, onChange: () => undefined };
  const box = h("input", { type: "checkbox" });
  return {
    until: () => (box.checked ? ends.all : ends.ok),
    control: h("label", { class: "choice" }, box, ` show failed iterations to their end (${duration(all)})`),
    onChange: (redraw) => box.addEventListener("change", redraw),
  };
}

type Column = [heading: string, value: (one: Iteration) => Child];

const JAIN = "Jain's index";

const COLUMNS: Column[] = [
  [
    "outcome",
    (one) =>
      h(
        "span",
        { class: one.outcome === "ok" ? "" : "failure" },
        breakable(one.outcome),
        one.detail && h("small", {}, ` ${one.detail}`),
      ),
  ],
  ["files", (one) => (one.files.length ? files(one) : "–")],
  ["goodput", (one) => measured(one, one.goodput_bps, goodput)],
  ["efficiency", (one) => measured(one, one.efficiency, percent)],
  ["handshake", (one) => maybe(one.handshake_s, duration)],
  ["first byte", (one) => maybe(one.ttfb_s, duration)],
  ["completion", (one) => maybe(one.completion_s, duration)],
  ["share of limit", (one) => maybe(one.share_of_limit, percent)],
  [JAIN, (one) => maybe(one.jain_index, (index) => index.toFixed(2))],
  ["packets forward, return", (one) => counts(one.forward_packets, one.return_packets)],
  ["queue drops", (one) => counts(one.forward_queue_drops, one.return_queue_drops)],
  ["losses", (one) => counts(one.forward_losses, one.return_losses)],
  ["wall time", (one) => duration(one.wall_s)],
  ["CPU client, server", (one) => stacked(duration(one.cpu_client_s), duration(one.cpu_server_s))],
  [
    "seed, packet log",
    (one) =>
      stacked(
        h("code", {}, one.seed),
        one.packet_log_hash &&
          h("code", { title: one.packet_log_hash }, one.packet_log_hash.replace(/^.*:/, "").slice(0, 12)),
      ),
  ],
];

/** Two values of a kind, one below the other: a table of one line each would not fit a page. */
function stacked(upper: Child, lower: Child): HTMLElement {
  return h("span", {}, upper, h("br"), lower);
}

/** What was counted forward and return; null is what nobody could count. */
function counts(forward: number | null, back: number | null): HTMLElement {
  return stacked(maybe(forward, String), maybe(back, String));
}

/** A value that a success has, except where the file fits into one flight. */
function measured(one: Iteration, value: number | null, show: (value: number) => string): Child {
  if (value !== null || one.outcome !== "ok") return maybe(value, show);
  return h("span", { title: NO_GOODPUT }, "–");
}

function files(one: Iteration): HTMLElement {
  const plots =
    one.trace?.script && h("a", { href: fragment({ trial: one.trial, plot: null, span: null }) }, "plots");
  return h("span", { class: "files" }, plots, ...one.files.map(({ label, href }) => h("a", { href }, label)));
}

/** Of a page or a live stream its measures stand in place of these. */
const OF_FILES = ["goodput", "efficiency", "first byte", "completion"];

function ofPages(iterations: Iteration[]): Column[] {
  const isKnown = (column: PageTime) => iterations.some((one) => one[column] !== null);
  return [
    ...timesOf(isKnown).map(([column, name]): Column => [name, (one) => maybe(one[column], duration)]),
    ["at once", (one) => maybe(one.requests_at_once, String)],
  ];
}

/** How even flows shared is shown where there are several. */
function columns(detail: CellDetail): Column[] {
  const shared = detail.iterations.some((one) => one.jain_index !== null);
  const all = COLUMNS.filter(([heading]) => shared || heading !== JAIN);
  const own = ofKind(detail);
  if (own.length === 0) return all;
  const [outcome, files, ...rest] = all.filter(([heading]) => !OF_FILES.includes(heading));
  return [outcome!, files!, ...own, ...rest];
}

/** The columns of what is no transfer of files. */
function ofKind(detail: CellDetail): Column[] {
  if (page(detail.workload)) return ofPages(detail.iterations);
  const measures = live(detail.workload) ? MEASURES : frames(detail.workload) ? FRAME_MEASURES : [];
  return measures.map(([column, name, show]): Column => [name, (one) => maybe(one[column], show)]);
}

function iterationTable(detail: CellDetail, figures: Figure[]): HTMLElement {
  const shown = columns(detail);
  const head = h(
    "tr",
    {},
    ...["iteration", ...shown.map(([heading]) => heading)].map((text) => h("th", { scope: "col" }, text)),
  );
  const several = detail.iterations.length > 1;
  const rows = detail.iterations.map((one, i) => {
    const name = h(
      "th",
      { scope: "row" },
      String(one.iteration),
      several && one.iteration === detail.median && h("small", {}, " median"),
    );
    const row = h(
      "tr",
      { class: several && one.iteration === detail.median ? "median" : "" },
      name,
      ...shown.map(([, value]) => h("td", {}, value(one))),
    );
    for (const [event, type] of [
      ["mouseenter", "highlight"],
      ["mouseleave", "downplay"],
    ] as const) {
      row.addEventListener(event, () =>
        figures.forEach((figure) => figure.chart?.dispatchAction({ type, seriesIndex: i })),
      );
    }
    return row;
  });
  const table = h("table", { class: "iterations" }, h("thead", {}, head), h("tbody", {}, ...rows));
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Iterations" }, table);
}

function endpoint({ role, name, version, driver }: CellDetail["endpoints"][number]): HTMLElement {
  return facts(
    [
      [role, h("b", {}, name)],
      ["version", version || "–"],
      ["driver", driver || "–"],
    ],
    "facts",
  );
}
