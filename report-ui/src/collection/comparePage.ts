// Any two runs side by side, as `bentpipe compare` says it.

import { breakable, h } from "../dom";
import { compare, remarks, type ComparedCell, type Comparison } from "./comparison";
import { controls, inPieces, list, redrawing, table, tick, type Control, type Drawn } from "./controls";
import { frame } from "./frame";
import type { Measure, Site } from "./model";
import { cellTitle, measureOf, shown, when } from "./names";
import { previous } from "./runsPage";
import { mean, outcomes, trials } from "./samples";
import { chosen, choose } from "./state";

const PIECE = 200;

export function comparePage(root: HTMLElement, site: Site): void {
  if (site.runs.length < 2) {
    frame(root, site, "compare", "", h("p", {}, "There is one run alone: nothing to compare it with."));
    return;
  }
  chooseFirst(site);
  const options = site.runs.map((run): [string, string] => [run.name, `${run.name}, ${when(run)}`]);
  const result = h("div", { class: "comparison", "aria-live": "polite" });
  const draw = redrawing(result, () => content(site, [a, b, measure, only]));
  const [a, b] = [list("Run A", "a", options, draw), list("Run B", "b", options, draw)];
  const measure = measures(site, draw);
  const only = tick("significant ones only", "only", draw);
  const swap = h("button", { type: "button" }, "Swap A and B");
  swap.addEventListener("click", () => {
    const [left, right] = [a.value(), b.value()];
    a.set(right);
    b.set(left);
    draw();
  });
  const row = controls(a, b, measure, only);
  row.append(swap);
  frame(root, site, "compare", "", row, result);
  draw();
}

/** Where nothing was chosen: the newest run that has cells of an earlier one, and that. */
function chooseFirst(site: Site): void {
  if (chosen("a") !== null && chosen("b") !== null) return;
  const last = site.runs.length - 1;
  const b = site.runs.findLastIndex((_, i) => previous(site, i) !== null);
  choose("a", site.runs[previous(site, b) ?? last - 1]!.name);
  choose("b", site.runs[b < 0 ? last : b]!.name);
}

type Controls = [a: Control, b: Control, measure: Control, only: Control];

/** The list of measures that some trial has. */
export function measures(site: Site, act: () => void): Control {
  return list(
    "Measure",
    "measure",
    site.measures.map(({ column, title }) => [column, title]),
    act,
  );
}

async function content(site: Site, [a, b, measure, only]: Controls): Promise<Drawn> {
  const [runA, runB] = [a, b].map((one) => site.runs.findIndex(({ name }) => name === one.value())) as [
    number,
    number,
  ];
  const of = measureOf(site, measure.value());
  const all = await trials(site, of.column);
  const both = compare(site, all, runA, runB);
  const listed = both.cells.filter((cell) => only.value() === "" || cell.significant);
  const significant = both.cells.filter((cell) => cell.significant).length;
  const said =
    both.cells.length === 0
      ? "No cell is in both runs."
      : `${of.title}: ${both.cells.length} cells in both, ${significant} differ significantly.`;
  const other = both.cells.some((cell) => cell.mixed) && " !: other application protocols.";
  const nodes = [
    h("p", { class: "said" }, said),
    listed.length > 0 && cellTable(site, listed, of),
    both.cells.length > 0 && h("p", { class: "note" }, method(site), other),
    notes(site, both, [runA, runB], of),
  ];
  return { nodes };
}

export function method(site: Site): string {
  const share = (value: number) => `${(value * 100).toFixed(0)}\u202f%`;
  return (
    `A, B: geometric means of the trials that succeeded; tables of a run have arithmetic ones. ` +
    `B/A: their ratio with its ${share(site.confidence)} interval, by t on logarithms, of pairs with the same seed if all are such, and five or more. ` +
    `*: significant by Benjamini and Hochberg over all that are compared; at most ${share(site.false_discoveries)} of these are none, on average.`
  );
}

function notes(site: Site, both: Comparison, [a, b]: [number, number], measure: Measure): HTMLElement {
  const lines =
    both.cells.length > 0 ? remarks(site, both, site.runs[a]!, site.runs[b]!, measure.column) : [];
  return h("ul", { class: "remarks" }, ...lines.map((line) => h("li", {}, line)));
}

function cellTable(site: Site, cells: ComparedCell[], measure: Measure): HTMLElement {
  const rows = cells.map((cell) => () => row(site, cell, measure));
  const heads = ["cell", "A", "B", "B/A", "interval", "", { text: "ok A" }, { text: "ok B" }];
  return inPieces(rows, PIECE, (first) => table("Cells of both runs", heads, first));
}

function row(site: Site, cell: ComparedCell, measure: Measure): HTMLElement {
  const { pair, setting } = cellTitle(site, cell.cell);
  const interval = cell.ratio?.interval(site.confidence) ?? null;
  return h(
    "tr",
    { class: cell.significant ? "significant" : null },
    h("th", { scope: "row", class: "words" }, breakable(pair), h("small", {}, h("br"), setting)),
    h("td", {}, shown(measure, mean(cell.a))),
    h("td", {}, shown(measure, mean(cell.b))),
    h("td", {}, cell.ratio ? ratioText(cell.ratio.value) : "–"),
    h("td", {}, interval ? interval.map(ratioText).join("–") : "–"),
    h("td", { class: "mark" }, (cell.significant ? "*" : "") + (cell.mixed ? "!" : "")),
    h("td", { class: "text" }, outcomes(cell.a)),
    h("td", { class: "text" }, outcomes(cell.b)),
  );
}

/** Three digits behind the point near 1, and less where a ratio is large. */
export function ratioText(ratio: number): string {
  return ratio < 10 ? ratio.toFixed(3) : String(Number(ratio.toPrecision(3)));
}
