// The section of a page, its times and a waterfall of the trial that stands for the cell; of a live stream the latter.
//
// The waterfall is a table whose last column is drawn: who cannot see it reads the same in words, and it needs no
// script to be printed, or to become narrow. What is asked for is an outline, what comes is filled.

import { h, type Child } from "./dom";
import { bytes, duration } from "./format";
import type { Cell, CellDetail, Iteration, PageFinding, StreamPackets, Waterfall } from "./model";
import { live } from "./live";
import { page, timesOf } from "./page";
import type { FilmFrame, PageRequest } from "./schema/requests";

/** As many rows are drawn: a page may have thousands. */
const MOST = 500;
const TICKS = 8;
const PICTURES = 8;

/** The section; null for a cell that neither loads a page nor watches a live stream. */
export function pageSection(cell: Cell, detail: CellDetail): Child {
  if (live(detail.workload)) {
    return h("section", { id: "page" }, h("h2", {}, "Live stream"), ...waterfall(detail));
  }
  const loads = page(detail.workload);
  if (!loads) return null;
  return h(
    "section",
    { id: "page" },
    h("h2", {}, "Page"),
    timesTable(cell, detail),
    ...waterfall(detail),
    ...held(detail.waterfall?.findings ?? []),
  );
}

/** Least, median and largest of the times; of a single success the times themselves. */
function timesTable(cell: Cell, detail: CellDetail): Child {
  const succeeded = detail.iterations.filter((one) => one.outcome === "ok");
  if (succeeded.length === 0) return h("p", {}, "No iteration loaded the page.");
  const spread = succeeded.length > 1;
  const rows = timesOf((column) => cell.spreads[column] !== null).map(([column, name, until]) => {
    const { min, median, max } = cell.spreads[column] ?? { min: null, median: null, max: null };
    const values = (spread ? [min, median, max] : [median]).map((value) =>
      h("td", {}, value === null ? "–" : duration(value)),
    );
    return h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "words" }, until), ...values);
  });
  const heads = ["time", "until", ...(spread ? ["least", "median", "largest"] : ["after"])];
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": "Times of the page" },
    h(
      "table",
      { class: "overview page-times" },
      h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", { scope: "col" }, head)))),
      h("tbody", {}, ...rows),
    ),
    h(
      "p",
      { class: "note" },
      `Since the client's first packet${page(detail.workload)?.visit ? " of the later visit" : ""}, over ${iterations(succeeded.length)}.`,
    ),
  );
}

function iterations(count: number): string {
  return count === 1 ? "the iteration that succeeded" : `the ${count} iterations that succeeded`;
}

function waterfall(detail: CellDetail): Child[] {
  const head = h("h3", {}, "Waterfall");
  const shown = detail.waterfall;
  const trial = detail.iterations.find((one) => one.iteration === shown?.iteration);
  if (shown?.failure) return [head, h("p", { class: "warning" }, `It cannot be shown: ${shown.failure}`)];
  if (!shown || !trial || shown.requests.length === 0) {
    return [
      head,
      h("p", {}, "No iteration has kept its requests. The command under “Run it again” keeps those of each."),
    ];
  }
  const which = shown.iteration === detail.median && detail.iterations.length > 1 ? ", the median" : "";
  return [
    head,
    h(
      "p",
      { class: "note" },
      `Iteration ${shown.iteration}${which}: a line for each in the order of asking. `,
      h("span", { class: "waits sample" }),
      " from asking until the response begins, ",
      h("span", { class: "comes sample" }),
      " until it is there.",
      shown.requests.some(isUnended) && " Hatched or dashed: it never came to its end.",
      ...lossLegend(shown),
      shown.film.length > 0 && " Pictures: what was to be seen then.",
    ),
    ...filmstrip(shown, trial),
    drawn(shown, trial),
    shown.requests.length > MOST &&
      h("p", { class: "note" }, `${shown.requests.length - MOST} more are in the trial's requests.json.`),
  ];
}

/** What held the page up: what was found, and folded what is not sure and what was ruled out. */
function held(findings: PageFinding[]): Child[] {
  const of = (verdict: PageFinding["verdict"]) => findings.filter((one) => one.verdict === verdict);
  const list = (some: PageFinding[]) =>
    h(
      "ul",
      { class: "findings" },
      ...some.map(({ verdict, title, text }) => h("li", { class: verdict }, h("b", {}, title), " ", text)),
    );
  const folded = (title: string, some: PageFinding[]) =>
    some.length > 0 && h("details", {}, h("summary", {}, `${title} (${some.length})`), list(some));
  if (findings.length === 0) return [];
  return [
    h("h3", {}, "What held it up"),
    of("yes").length > 0 ? list(of("yes")) : h("p", {}, "No flaw of the page was found."),
    folded("Not sure", of("not_sure")),
    folded("Ruled out", of("no")),
  ];
}

/** What is said of lost packets; nothing where none are known. */
function lossLegend({ streams }: Waterfall): Child[] {
  if (!streams?.some((one) => one.lost_s.length > 0)) return [];
  return [" ", h("span", { class: "lost sample" }), " a packet of it that was lost, when it was sent."];
}

/** What was to be seen at equal distances of time; nothing where no browser told. */
function filmstrip({ requests, film }: Waterfall, trial: Iteration): Child[] {
  const pictures = picturesAt(film, end(requests, trial), PICTURES).map(({ at, shown }) => {
    const image = h("img", {
      src: `data:image/jpeg;base64,${shown.jpeg}`,
      alt: `The page after ${duration(at)}`,
    });
    return h("li", {}, image, h("span", {}, duration(at)));
  });
  return pictures.length === 0
    ? []
    : [h("ol", { class: "film", "aria-label": "What was to be seen" }, ...pictures)];
}

/** The pictures that were to be seen at `count` equal steps until the end. */
export function picturesAt(
  film: FilmFrame[],
  until: number,
  count: number,
): { at: number; shown: FilmFrame }[] {
  const times = Array.from({ length: count }, (_, i) => ((i + 1) * until) / count);
  return times.flatMap((at) => {
    const shown = film.findLast((one) => one.at_s <= at);
    return shown ? [{ at, shown }] : [];
  });
}

function drawn({ requests, streams }: Waterfall, trial: Iteration): HTMLElement {
  const until = end(requests, trial, streams ?? []);
  const step = tickStep(until, TICKS);
  const marks = timesOf(() => false).flatMap(([column, name]) => {
    const at = trial[column];
    return at === null ? [] : [{ name, at, share: at / until }];
  });
  const places = marks.map(({ name, share }) => `--${name.toLowerCase()}:${share.toFixed(5)}`);
  const heads = ["resource", "type", "size"].map((head) => h("th", { scope: "col" }, head));
  const table = h(
    "table",
    { class: "waterfall", style: [...places, `--step:${(step / until).toFixed(5)}`].join(";") },
    h("caption", { class: "unseen" }, "Resources in the order of asking, and when each came"),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ...heads,
        h(
          "th",
          { scope: "col", class: "bars" },
          h("span", { class: "unseen" }, "asked for, and came"),
          ...marks.map(({ name, at, share }) => mark(name, at, share)),
          axis(until, step),
        ),
      ),
    ),
    h("tbody", {}, ...requests.slice(0, MOST).map((one, i) => row(one, streams?.[i] ?? null, until))),
    h(
      "tfoot",
      { "aria-hidden": "true" },
      h("tr", {}, h("td", { colspan: 3 }), h("td", { class: "bars" }, axis(until, step))),
    ),
  );
  return h("div", { class: "falls" }, table);
}

/** The end of the axis: a little behind all that there is. */
export function end(
  requests: PageRequest[],
  trial: Pick<Iteration, "plt_s">,
  streams: StreamPackets[] = [],
): number {
  const times = [
    ...requests.flatMap((one) => [one.asked_s, one.first_byte_s, one.last_byte_s]),
    ...streams.flatMap((one) => one.lost_s),
  ];
  return 1.02 * Math.max(0.001, trial.plt_s ?? 0, ...times.map((time) => time ?? 0));
}

/** The step of an axis up to `until` that has at most `most` of them: 1, 2 or 5 times a power of ten. */
export function tickStep(until: number, most: number): number {
  const power = 10 ** Math.floor(Math.log10(until / most));
  return power * ([1, 2, 5].find((factor) => factor * power * most >= until) ?? 10);
}

function axis(until: number, step: number): HTMLElement {
  const ticks = Array.from({ length: Math.floor(until / step) + 1 }, (_, i) => i * step);
  const places = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
  const label = (at: number) =>
    h("span", { style: `left:${percent(at / until)}` }, at.toFixed(places) + (at === 0 ? "\u202fs" : ""));
  return h("div", { class: "ticks", "aria-hidden": "true" }, ...ticks.map(label));
}

/** The name of a line; those on the right stand before it. The table of times says the same. */
function mark(name: string, at: number, share: number): HTMLElement {
  const side = share > 0.6 ? `right:${percent(1 - share)}` : `left:${percent(share)}`;
  return h(
    "div",
    { class: `mark ${name.toLowerCase()}`, "aria-hidden": "true" },
    h("span", { class: share > 0.6 ? "before" : "", style: side }, h("b", {}, name), ` ${duration(at)}`),
  );
}

function row(one: PageRequest, stream: StreamPackets | null, until: number): HTMLElement {
  const says = words(one) + ofPackets(stream);
  return h(
    "tr",
    { title: `${one.path}: ${says}` },
    h("th", { scope: "row" }, one.path),
    h("td", { class: "type" }, one.type),
    h("td", { class: "size" }, bytes(one.bytes)),
    h(
      "td",
      { class: "bars" },
      ...bars(one, until),
      ...losses(stream, until),
      h("span", { class: "unseen" }, says),
    ),
  );
}

/** What a line of the waterfall shows, in words. */
export function words(one: PageRequest): string {
  const { asked_s, first_byte_s, last_byte_s, initiator } = one;
  const by = initiator === null ? "" : `, led to by ${initiator}`;
  if (asked_s === null) return `never asked for${by}`;
  const parts = [`asked for at ${duration(asked_s)}`];
  parts.push(first_byte_s === null ? "no response" : `response from ${duration(first_byte_s)}`);
  if (last_byte_s !== null) parts.push(`to ${duration(last_byte_s)}`);
  else if (first_byte_s !== null) parts.push("not all of which came");
  return `${parts[0]}, ${parts.slice(1).join(" ")}${by}, urgency ${one.urgency}`;
}

/** How many packets of a request's stream were lost, in words. */
export function ofPackets(stream: StreamPackets | null): string {
  if (!stream) return "";
  const { packets, lost_s } = stream;
  return `; ${lost_s.length} of ${packets} packet${packets === 1 ? "" : "s"} lost`;
}

function losses(stream: StreamPackets | null, until: number): Child[] {
  return (stream?.lost_s ?? []).map((at) =>
    h("span", { class: "lost", "aria-hidden": "true", style: `left:${percent(at / until)}` }),
  );
}

function bars({ asked_s, first_byte_s, last_byte_s }: PageRequest, until: number): Child[] {
  if (asked_s === null) return [h("span", { class: "absent-bar", "aria-hidden": "true" }, "never asked for")];
  const bar = (kind: string, from: number, to: number) =>
    h("span", {
      class: kind,
      "aria-hidden": "true",
      style: `left:${percent(from / until)};width:${percent((to - from) / until)}`,
    });
  const begun = first_byte_s ?? until;
  return [
    bar(first_byte_s === null ? "waits endless" : "waits", asked_s, begun),
    last_byte_s !== null && first_byte_s !== null && bar("comes", first_byte_s, last_byte_s),
    last_byte_s === null && first_byte_s !== null && bar("comes endless", begun, until),
  ];
}

/** Whether it was asked for, and did not come whole. */
function isUnended({ asked_s, last_byte_s }: PageRequest): boolean {
  return asked_s !== null && last_byte_s === null;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(3)}%`;
}
