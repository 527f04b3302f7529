// All scenarios of a run in one table, and all failures in another.

import { breakable, h, type Child } from "./dom";
import { duration, goodput, percent } from "./format";
import { anchor, name } from "./header";
import type { Margin, Matrix, Run } from "./model";
import { hasGoodput } from "./matrix";
import { loadTime, page } from "./page";

/** The scenarios side by side: mean and maximum over the means of cells. */
export function overview(run: Run): HTMLElement {
  const isPage = ({ workload }: Matrix) => page(workload) !== null;
  const isRated = ({ workload }: Matrix) => hasGoodput(workload);
  const [pages, files] = [run.matrices.some(isPage), run.matrices.some(isRated)];
  const heads = [
    "scenario",
    "path",
    ...(files ? ["mean goodput", "mean efficiency", "best goodput", "best efficiency"] : []),
    ...(pages ? ["mean page load", "best page load"] : []),
    "cells without success",
    "failed trials",
  ];
  const rows = run.matrices.map((matrix) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, h("a", { href: `#${anchor(run, matrix)}` }, name(run, matrix))),
      h("td", { class: "words" }, String(matrix.summary.title ?? "")),
      ...(files ? rates(matrix.total) : []),
      ...(pages ? loadTimes(matrix) : []),
      ...failures(matrix.total),
    ),
  );
  const table = h(
    "table",
    { class: "overview" },
    h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", { scope: "col" }, head)))),
    h("tbody", {}, ...rows),
  );
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Overview" }, table);
}

function rates(total: Margin): HTMLElement[] {
  const mbit = (bps: number | null) => (bps === null ? "–" : goodput(bps));
  const share = (ratio: number | null) => (ratio === null ? "–" : percent(ratio));
  const bar = h("span", { class: "bar", style: `--share:${total.efficiency ?? 0}`, "aria-hidden": "true" });
  return [
    h("td", {}, mbit(total.goodput_bps), total.cells_h3 > 0 && ` with ${total.cells_h3} h3`),
    h("td", {}, bar, share(total.efficiency)),
    h("td", {}, mbit(total.goodput_max_bps)),
    h("td", {}, share(total.efficiency_max)),
  ];
}

/** Mean and least of the median page load times of cells. */
function loadTimes({ cells }: Matrix): HTMLElement[] {
  const known = cells.flatMap((cell) => loadTime(cell) ?? []);
  const mean = known.reduce((sum, time) => sum + time, 0) / known.length;
  return [mean, Math.min(...known)].map((time) => h("td", {}, known.length ? duration(time) : "–"));
}

function failures(total: Margin): HTMLElement[] {
  return [
    h("td", {}, `${total.cells_failed} of ${total.cells}`),
    h("td", { class: total.failed ? "failure" : "" }, `${total.failed} of ${total.trials}`),
  ];
}

/** Which combinations cannot be and have no trials, a line for each reason. */
export function notApplicable({ manifest }: Run): HTMLElement[] {
  return manifest.not_applicable.map(({ reason, combinations, of }) =>
    h("p", { class: "note" }, `Not applicable: ${reason}: ${combinations} of ${of} combinations.`),
  );
}

/** Every trial that failed, with its reason; null if none did. What is unsupported is no failure: the matrix shows it. */
export function failedTrials(run: Run): Child {
  const rows = run.matrices.flatMap((matrix) =>
    matrix.cells.flatMap((cell) =>
      cell.trials
        .filter((trial) => trial.outcome !== "ok" && trial.outcome !== "unsupported")
        .map((trial) =>
          h(
            "tr",
            {},
            h("td", {}, name(run, matrix)),
            h("td", {}, cell.client),
            h("td", {}, cell.server),
            h(
              "td",
              {},
              h("a", { href: `cells/${encodeURIComponent(cell.slug)}.html` }, String(trial.iteration)),
            ),
            h("td", { class: "failure" }, breakable(trial.outcome)),
            h("td", { class: "words" }, trial.detail),
          ),
        ),
    ),
  );
  if (rows.length === 0) return null;
  const heads = ["scenario", "client", "server", "iteration", "outcome", "detail"].map((head) =>
    h("th", { scope: "col" }, head),
  );
  const table = h(
    "table",
    { class: "failed-trials" },
    h("thead", {}, h("tr", {}, ...heads)),
    h("tbody", {}, ...rows),
  );
  const box = h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": "Failed trials" },
    table,
  );
  return h(
    "section",
    { id: "failures" },
    h("h2", {}, "Failures"),
    h(
      "details",
      { open: rows.length <= 12 },
      h("summary", {}, `${rows.length} of ${run.trials} trials failed`),
      box,
    ),
  );
}
