// The section of a matrix: its path, the table, the distributions.

import { choice } from "./choice";
import { distribution, followDots } from "./distribution";
import { facts, h } from "./dom";
import { flaws } from "./flaws";
import { anchor, name } from "./header";
import { hasGoodput, matrixTable, scale, type Order } from "./matrix";
import type { Matrix, Run } from "./model";
import { pathFacts } from "./path";

export interface Section {
  element: HTMLElement;
  /** Draw its charts; only once it is in the page. */
  start: () => void;
  stop: () => void;
}

export function scenario(run: Run, matrix: Matrix): Section {
  const roles = choice("Group by", ["server", "client"] as const);
  const orders = choice("Order by", ["name", "efficiency"] as const);
  const { figures, groupBy, nothing } = distribution(matrix);
  let table = matrixTable(matrix, "name");
  orders.onChange((order: Order) => {
    const next = matrixTable(matrix, order);
    table.replaceWith(next);
    table = next;
  });
  roles.onChange(groupBy);
  const { source, notes, ...summary } = matrix.summary;
  const rated = hasGoodput(matrix.workload);
  const element = h(
    "section",
    { id: anchor(run, matrix), class: "scenario" },
    h("h2", {}, name(run, matrix), typeof summary.title === "string" && h("small", {}, ` ${summary.title}`)),
    facts(pathFacts(summary), "facts inline"),
    typeof notes === "string" && notes !== "" && h("p", { class: "note source" }, notes),
    typeof source === "string" && source !== "" && h("p", { class: "note source" }, `Source: ${source}`),
    rated && h("div", { class: "controls" }, scale(), orders.element),
    table,
    flaws(matrix),
    rated && h("div", { class: "controls" }, h("h3", {}, "Distribution"), nothing === null && roles.element),
    rated && nothing !== null && h("p", {}, nothing),
    rated && h("div", { class: "pair-of-charts" }, ...figures.map((figure) => figure.element)),
  );
  const start = () => {
    if (!rated) return;
    for (const figure of figures) figure.start();
    if (figures[1]) followDots(figures[1]);
  };
  return { element, start, stop: () => figures.forEach((figure) => figure.stop?.()) };
}
