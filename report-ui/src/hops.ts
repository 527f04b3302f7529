// What passed between client, proxies and server, hop by hop, and what the proxies took.

import { h, type Child } from "./dom";
import { bytes, duration, percent } from "./format";
import type { CellDetail } from "./model";
import type { HopResult } from "./schema/record";

/** The section on hops, of the iteration that stands for the cell; null without proxies. */
export function hops(detail: CellDetail): Child {
  if (detail.hops.length === 0) return null;
  const heads = [
    "hop",
    "packets forward, return",
    "queue drops",
    "losses",
    "least RTT",
    "sent again",
    "findings",
  ];
  const rows = detail.hops.map((hop) => {
    const values = [
      counts(hop, "packets"),
      counts(hop, "queue_drops"),
      counts(hop, "losses"),
      hop.rtt_min_ms === null ? "–" : `${hop.rtt_min_ms.toFixed(1)} ms`,
      hop.retransmitted_share === null ? "–" : percent(hop.retransmitted_share),
      hop.findings.join(", ") || "–",
    ];
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, `${hop.from} – ${hop.to}`),
      ...values.map((value) => h("td", {}, value)),
    );
  });
  const table = h(
    "table",
    { class: "iterations" },
    h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", { scope: "col" }, head)))),
    h("tbody", {}, ...rows),
  );
  const took = detail.proxies.map(
    (one) =>
      `the proxy at the ${one.place} ${duration(one.cpu_s)} of CPU time and ${bytes(one.memory_bytes)} of memory`,
  );
  return h(
    "section",
    {},
    h("h2", {}, "Hops"),
    h(
      "p",
      { class: "note" },
      `Of iteration ${detail.median ?? 1}. What is decoded of the trial elsewhere on this page is of the hop at the client. `,
      took.length > 0 && `It took ${took.join(", ")}.`,
    ),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Hops" }, table),
  );
}

function counts(hop: HopResult, what: "packets" | "queue_drops" | "losses"): string {
  return `${hop[`forward_${what}`]}, ${hop[`return_${what}`]}`;
}
