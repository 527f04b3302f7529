// What the traces of a matrix show to have gone wrong: each finding with its trials and the cells they are of.

import { h, type Child } from "./dom";
import type { Cell, Matrix } from "./model";

/** As many cells stand in a line; more are folded. */
const OPEN = 6;

/** The table, the most frequent finding first; null if the records hold no finding. */
export function flaws(matrix: Matrix): Child {
  const found = byRule(matrix.cells);
  if (found.size === 0) return null;
  const trials = matrix.cells.reduce((sum, cell) => sum + cell.trials.length, 0);
  const rows = [...found]
    .map(([rule, places]) => ({ rule, places, count: places.reduce((sum, { count }) => sum + count, 0) }))
    .sort((a, b) => b.count - a.count)
    .map(({ rule, places, count }) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, title(rule)),
        h("td", {}, `${count} of ${trials}`),
        h("td", { class: "words" }, links(places)),
      ),
    );
  const heads = ["finding", "trials", "cells"].map((text) => h("th", { scope: "col" }, text));
  const table = h(
    "table",
    { class: "failed-trials found" },
    h("thead", {}, h("tr", {}, ...heads)),
    h("tbody", {}, ...rows),
  );
  return h(
    "div",
    {},
    h("div", { class: "controls" }, h("h3", {}, "What went wrong")),
    h(
      "p",
      { class: "note" },
      "From the wire alone, in trials whose packets were decoded. The page of a cell has the evidence, where it has a trace.",
    ),
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": `What went wrong in ${matrix.scenario}` },
      table,
    ),
  );
}

interface Place {
  cell: Cell;
  /** Trials of the cell. */
  count: number;
}

function byRule(cells: Cell[]): Map<string, Place[]> {
  const found = new Map<string, Place[]>();
  for (const cell of cells) {
    for (const [rule, count] of cell.findings) {
      const places = found.get(rule) ?? [];
      found.set(rule, [...places, { cell, count }]);
    }
  }
  return found;
}

function title(rule: string): string {
  return rule.charAt(0).toUpperCase() + rule.slice(1).replaceAll("_", " ");
}

function links(places: Place[]): HTMLElement {
  const list = h("ul", {}, ...places.map((place) => h("li", {}, link(place))));
  if (places.length <= OPEN) return list;
  return h("details", {}, h("summary", {}, `${places.length} cells`), list);
}

function link({ cell, count }: Place): HTMLElement {
  const { client, server, trials, slug } = cell;
  const href = `cells/${encodeURIComponent(slug)}.html#trace`;
  return h("a", { href }, `${client} → ${server}, ${count} of ${trials.length}`);
}
