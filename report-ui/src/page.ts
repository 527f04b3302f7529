// What a page is to the report: its times, and what cells and matrices of pages are called.

import type { Cell } from "./model";

export type PageTime = "rs_s" | "fcp_s" | "speed_index_s" | "lcp_s" | "dcl_s" | "plt_s";

/** The times in their order: the column of records, what it is called, until when it lasts. */
export const TIMES: [column: PageTime, name: string, until: string][] = [
  ["rs_s", "RS", "response start: the response to the first request begins"],
  ["fcp_s", "FCP", "first contentful paint: what blocks rendering is there"],
  ["speed_index_s", "SI", "Speed Index: the mean of when what is to be seen is drawn"],
  ["lcp_s", "LCP", "largest contentful paint: the largest picture or text is drawn"],
  ["dcl_s", "DOM", "DOM content: the document is there, and its stylesheets and scripts"],
  ["plt_s", "PLT", "page load time: every resource is there"],
];

const OF_BROWSERS: PageTime[] = ["speed_index_s", "lcp_s"];

/** Those that are there; what a browser alone knows is left out where it said nothing. */
export function timesOf(isKnown: (column: PageTime) => boolean): typeof TIMES {
  return TIMES.filter(([column]) => !OF_BROWSERS.includes(column) || isKnown(column));
}

/** The page of a workload, its version of HTTP, what is left of an earlier visit and further flows, as in
 * `page:kosek:h3:early`; null for any other workload. */
export function page(workload: string): { name: string; http: string; visit: string; beside: string } | null {
  const [, name, http, visit = "", beside = ""] =
    workload.match(/^page:(.+?):h([123]|2-h3)(?::([a-z-]+))?( \+ .*)?$/) ?? [];
  const version = http === "2-h3" ? "2→3" : http; // an upgrade
  return name && version ? { name: name.replace(/#[0-9a-f]{8}$/, ""), http: version, visit, beside } : null;
}

/** The median page load time of a cell; null if it has none. */
export function loadTime(cell: Cell): number | null {
  return cell.spreads.plt_s?.median ?? null;
}
