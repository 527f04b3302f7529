// Each cell over the runs in which it was measured: where its stacks changed, and where it changed.

import { breakable, h, svg, type Child } from "../dom";
import { cellFigure, cellRuns } from "./cellRuns";
import { measures, method } from "./comparePage";
import { controls, filter, inPieces, redrawing, table, tick, type Control, type Drawn } from "./controls";
import { frame } from "./frame";
import type { Measure, Site } from "./model";
import { cellTitle, measureOf, shown, when } from "./names";
import { trials } from "./samples";
import { arrow, change, series, stackOf, type Series } from "./series";
import { chosen, choose } from "./state";

const PIECE = 60;

interface Filters {
  measure: Control;
  stack: Control;
  scenario: Control;
  changed: Control;
}

export function changesPage(root: HTMLElement, site: Site): void {
  const result = h("div", { class: "changes" });
  const draw = redrawing(result, () => content(site, filters));
  const unique = (names: string[]) => [...new Set(names)].sort();
  const filters: Filters = {
    measure: measures(site, draw),
    stack: filter(
      "Stack",
      "stack",
      unique(site.cells.flatMap((cell) => [cell.client, cell.server].map(stackOf))),
      draw,
    ),
    scenario: filter("Scenario", "scenario", unique(site.cells.map(({ scenario }) => scenario)), draw),
    changed: tick("cells that changed only", "changed", draw),
  };
  frame(
    root,
    site,
    "changes",
    "",
    controls(filters.measure, filters.stack, filters.scenario, filters.changed),
    result,
  );
  draw();
}

async function content(site: Site, filters: Filters): Promise<Drawn> {
  if (site.measures.length === 0) return { nodes: [h("p", {}, "No trial has a measure.")] };
  const measure = measureOf(site, filters.measure.value());
  const every = series(site, await trials(site, measure.column));
  const ordered = every
    .filter((one) => isWanted(site, one, filters))
    .sort((a, b) => change(b) - change(a) || b.points.length - a.points.length);
  const detail = h("section", { id: "cell", "aria-live": "polite" });
  let stop: (() => void) | undefined;
  const open = (one: Series) => {
    stop?.();
    const figure = cellFigure(site, one, measure);
    const { pair, setting } = cellTitle(site, one.cell);
    detail.replaceChildren(
      h("h2", {}, pair, h("small", {}, ` ${setting}, ${site.testbeds[one.testbed]}`)),
      figure.element,
      cellRuns(site, one, measure),
    );
    figure.start();
    stop = () => figure.stop?.();
    choose("cell", keyOf(one));
  };
  const rows = ordered.map(
    (one) => () =>
      row(site, one, measure, () => {
        open(one);
        detail.scrollIntoView({ block: "nearest" });
      }),
  );
  const first = ordered.find((one) => keyOf(one) === chosen("cell")) ?? ordered[0];
  return {
    nodes: [
      h("p", { class: "said" }, said(every, ordered, measure)),
      legend(site),
      ordered.length > 0 && inPieces(rows, PIECE, (made) => table("Cells", HEADS, made)),
      detail,
    ],
    start: () => first && open(first),
  };
}

const HEADS = [
  "cell",
  "runs",
  "first",
  { text: "over the runs" },
  "last",
  { text: "changes that are more than chance" },
];

function keyOf(one: Series): string {
  return `${one.cell}.${one.testbed}`;
}

function isWanted(site: Site, one: Series, { stack, scenario, changed }: Filters): boolean {
  const cell = site.cells[one.cell]!;
  return (
    (stack.value() === "" || [cell.client, cell.server].map(stackOf).includes(stack.value())) &&
    (scenario.value() === "" || cell.scenario === scenario.value()) &&
    (changed.value() === "" || one.steps.some((step) => step.significant))
  );
}

function said(every: Series[], listed: Series[], measure: Measure): string {
  const steps = every.flatMap((one) => one.steps);
  const [tested, significant] = [
    steps.filter((step) => step.adjustedP !== null).length,
    steps.filter((step) => step.significant).length,
  ];
  return (
    `${measure.title}, medians: ${listed.length} of ${every.length} cells. ` +
    `Of ${steps.length} steps from one run to the next, ${tested} could be tested and ${significant} are more than chance.`
  );
}

function legend(site: Site): HTMLElement {
  return h(
    "p",
    { class: "note" },
    "Dots are medians, thin lines reach from the least to the largest value of trials that succeeded. A dashed line: the stack's version or sources, the path or the version of IP differ from the run before. A ring: a change that is more than chance. ",
    method(site),
    " Here that is all cells of the site and all their steps, whatever is listed.",
  );
}

function row(site: Site, one: Series, measure: Measure, open: () => void): HTMLElement {
  const { pair, setting } = cellTitle(site, one.cell);
  const button = h("button", { type: "button", class: "cell-button" }, breakable(pair));
  button.addEventListener("click", open);
  const known = one.points.filter((point) => point.summary);
  const bed = site.testbeds.length > 1 ? `, ${site.testbeds[one.testbed]}` : "";
  return h(
    "tr",
    {},
    h("th", { scope: "row", class: "words" }, button, h("small", {}, h("br"), `${setting}${bed}`)),
    h("td", {}, String(known.length)),
    h("td", {}, shown(measure, known[0]!.summary!.median)),
    h("td", {}, spark(site, one, measure)),
    h("td", {}, shown(measure, known.at(-1)!.summary!.median)),
    h("td", { class: "text" }, changes(site, one)),
  );
}

function changes(site: Site, one: Series): Child {
  const found = one.steps.filter((step) => step.significant);
  if (found.length === 0) return one.steps.some((step) => step.adjustedP !== null) ? "none" : "–";
  const text = found.map((step) => {
    const why = step.marks.length > 0 ? `: ${step.marks.join("; ")}` : "";
    return h(
      "li",
      {},
      h("b", {}, arrow(step.ratio!.value)),
      ` in ${site.runs[step.to]!.name} (${when(site.runs[step.to]!)})${why}`,
    );
  });
  return h("ul", { class: "steps" }, ...text);
}

const [WIDTH, HEIGHT, EDGE] = [190, 38, 6];

/** The course of a cell in small: its runs one after the other. */
function spark(site: Site, one: Series, measure: Measure): SVGElement {
  const known = one.points.filter((point) => point.summary);
  const [low, high] = [
    Math.min(...known.map((point) => point.summary!.min)),
    Math.max(...known.map((point) => point.summary!.max)),
  ];
  const x = (i: number) =>
    known.length === 1 ? WIDTH / 2 : EDGE + ((WIDTH - 2 * EDGE) * i) / (known.length - 1);
  const y = (value: number) =>
    high === low ? HEIGHT / 2 : HEIGHT - EDGE - ((HEIGHT - 2 * EDGE) * (value - low)) / (high - low);
  const path = known.map((point, i) => `${i ? "L" : "M"}${x(i)} ${y(point.summary!.median)}`).join("");
  const step = (i: number) => one.steps[i - 1];
  const label = known
    .map((point) => `${site.runs[point.run]!.name} ${shown(measure, point.summary!.median)}`)
    .join(", ");
  return svg(
    "svg",
    {
      class: "spark",
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      width: WIDTH,
      height: HEIGHT,
      role: "img",
      "aria-label": label,
    },
    ...known.map((_, i) =>
      step(i)?.marks.length
        ? svg("line", {
            class: "mark",
            x1: (x(i) + x(i - 1)) / 2,
            x2: (x(i) + x(i - 1)) / 2,
            y1: 0,
            y2: HEIGHT,
          })
        : null,
    ),
    ...known.map(({ summary }, i) =>
      svg("line", { class: "range", x1: x(i), x2: x(i), y1: y(summary!.min), y2: y(summary!.max) }),
    ),
    svg("path", { class: "course", d: path }),
    ...known.map(({ summary }, i) =>
      svg("circle", { class: "dot", cx: x(i), cy: y(summary!.median), r: 2.4 }),
    ),
    ...known.map(({ summary }, i) =>
      step(i)?.significant ? svg("circle", { class: "ring", cx: x(i), cy: y(summary!.median), r: 5 }) : null,
    ),
  );
}
