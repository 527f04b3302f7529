// What stands on top of every page.

import { h, svg } from "./dom";
import { bytes } from "./format";

/** The name of the project behind its sign: a path up to the satellite and down again. */
export function brand(href: string): HTMLElement {
  const sign = svg(
    "svg",
    { viewBox: "0 0 34 22", width: 34, height: 22, "aria-hidden": "true" },
    svg("path", { d: "M3 19 17 5l14 14", fill: "none", stroke: "currentColor", "stroke-width": 2.5, "stroke-linejoin": "round", "stroke-linecap": "round" }),
    svg("circle", { cx: 17, cy: 5, r: 3.6, class: "satellite" }),
  );
  return h("a", { class: "brand", href }, sign, h("span", {}, "Bentpipe"));
}

/** What sets a matrix or cell apart from others of the same scenario: "transfer of 10 MiB, direct, sim". */
export function setting(of: { workload: string; treatment: string; testbed: string }): string {
  const [, name, size] = of.workload.match(/^(\w+):(\d+)$/) ?? [];
  const workload = name && size ? `${name} of ${bytes(Number(size))}` : of.workload;
  return `${workload}, ${of.treatment}, ${of.testbed}`;
}
