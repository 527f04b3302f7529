// What stands on top of every page, and what matrices are called and linked by.

import { h, svg } from "./dom";
import { bytes } from "./format";
import type { Matrix, Run } from "./model";
import { frames } from "./frames";
import { live } from "./live";
import { page } from "./page";

/** The name of the project behind its sign: a path up to the satellite and down again. */
export function brand(href: string): HTMLElement {
  const sign = svg(
    "svg",
    { viewBox: "0 0 34 22", width: 34, height: 22, "aria-hidden": "true" },
    svg("path", {
      d: "M3 19 17 5l14 14",
      fill: "none",
      stroke: "currentColor",
      "stroke-width": 2.5,
      "stroke-linejoin": "round",
      "stroke-linecap": "round",
    }),
    svg("circle", { cx: 17, cy: 5, r: 3.6, class: "satellite" }),
  );
  return h("a", { class: "brand", href }, sign, h("span", {}, "Bentpipe"));
}

/** What sets a matrix or cell apart from others of the same scenario: "transfer of 10 MiB, direct, sim", "multiplexing of
 * 2000 files of 32 B, direct, sim". */
export function setting(of: Setting): string {
  return `${workload(of)}, ${of.treatment}, ${of.testbed}`;
}

type Setting = { workload: string; treatment: string; testbed: string };

/** A workload in words: "transfer of 10 MiB". */
export function workload(of: { workload: string }): string {
  const loads = page(of.workload);
  if (loads) {
    const visit = loads.visit && `, ${loads.visit}`;
    return `page ${loads.name} over HTTP/${loads.http}${visit}${loads.beside}`;
  }
  const watches = live(of.workload);
  if (watches) return `live stream of ${watches.time} over HTTP/${watches.http}${watches.beside}`;
  const sees = frames(of.workload);
  if (sees) return `frames for ${sees.time} over ${sees.over}, ${sees.deadline} each${sees.beside}`;
  const [, name, count, size] = of.workload.match(/^(\w+):(?:(\d+)x)?(\d+)$/) ?? [];
  const files = count ? `${count} files of ` : "";
  return name && size ? `${name} of ${files}${bytes(Number(size))}` : of.workload;
}

/** A scenario's label; where the run has several matrices of it, with what sets them apart. */
export function name(run: Run, matrix: Matrix): string {
  const same = run.matrices.filter((one) => one.scenario === matrix.scenario);
  if (same.length === 1) return matrix.scenario;
  const differ = [workload, ({ treatment }: Setting) => treatment, ({ testbed }: Setting) => testbed].filter(
    (part) => same.some((one) => part(one) !== part(matrix)),
  );
  return `${matrix.scenario} (${differ.map((part) => part(matrix)).join(", ")})`;
}

/** The fragment of the index page that shows a matrix. */
export function anchor(run: Run, matrix: Matrix): string {
  return `matrix-${run.matrices.indexOf(matrix) + 1}`;
}
