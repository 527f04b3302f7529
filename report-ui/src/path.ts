// The summary of a scenario, in the order and the words of people who read about links.

import { quantity } from "./format";
import type { Json } from "./model";

const ORDER = ["rate", "RTT", "queue", "loss", "timeout"];
const PROSE = ["name", "title", "notes", "source"];
/** Said already in the scenario's own words, or no part of it; programs read them. */
const FOR_PROGRAMS = [
  "forward_queue_bytes",
  "return_queue_bytes",
  "forward_marks",
  "return_marks",
  "mtu_bytes",
];

/** The figures of a path. What the directions share is said once: `rate (forward / return)`. */
export function pathFacts(summary: { [key: string]: Json }): [name: string, text: string][] {
  const values = new Map<string, string>();
  for (const [key, value] of Object.entries(summary)) {
    if (PROSE.includes(key) || FOR_PROGRAMS.includes(key) || value === null || value === "") continue;
    const { name, text } = quantity(key, value);
    values.set(name, text);
  }
  const entries: [string, string][] = [];
  for (const [name, text] of values) {
    const [direction, ...rest] = name.split(" ");
    const other = `${direction === "forward" ? "return" : "forward"} ${rest.join(" ")}`;
    const shared = (direction === "forward" || direction === "return") && values.has(other);
    if (!shared) entries.push([name, text]);
    else if (direction === "forward") entries.push(both(rest.join(" "), text, values.get(other) ?? ""));
  }
  const place = ([name]: [string, string]) =>
    (ORDER.findIndex((word) => name.startsWith(word)) + ORDER.length + 1) % (ORDER.length + 1);
  return entries.sort((a, b) => place(a) - place(b));
}

function both(name: string, forward: string, back: string): [string, string] {
  return forward === back
    ? [name, `${forward}${forward === "none" ? "" : " each way"}`]
    : [`${name} forward / return`, `${forward} / ${back}`];
}
