// Any JSON value as nested lists that open and close.

import { facts, h, type Child } from "./dom";
import { quantity } from "./format";
import type { Json } from "./model";

type Entries = { [key: string]: Json };

export function isEntries(value: Json | undefined): value is Entries {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The entries of an object: plain values first, then what nests; what is empty is left out. */
export function tree(whole: Entries, depth = 0): HTMLElement {
  const value = Object.fromEntries(Object.entries(whole).filter(([, item]) => !empty(item)));
  const plain = Object.entries(value).filter(([, item]) => !nests(item));
  const nested = Object.entries(value).flatMap(([key, item]): [string, Entries | Json[]][] =>
    nests(item) ? [[key, item]] : [],
  );
  return h(
    "div",
    { class: "tree" },
    plain.length > 0 &&
      facts(
        plain.map(([key, item]) => [key, leaf(key, item)]),
        "facts",
      ),
    ...nested.map(([key, item]) =>
      h("details", { open: depth === 0 && flat(item) }, h("summary", {}, key), branch(item, depth + 1)),
    ),
  );
}

/** Whether there is nothing to show, however deep. */
export function empty(value: Json): boolean {
  if (Array.isArray(value)) return value.every(empty);
  return isEntries(value) ? Object.values(value).every(empty) : value === "" || value === null;
}

/** Whether nothing nests inside, so that it may as well stand open. */
function flat(value: Entries | Json[]): boolean {
  return !Object.values(value).some(nests);
}

function nests(value: Json): value is Entries | Json[] {
  return isEntries(value)
    ? Object.keys(value).length > 0
    : Array.isArray(value) && value.some((v) => typeof v === "object");
}

function branch(value: Entries | Json[], depth: number): HTMLElement {
  return tree(
    Array.isArray(value) ? Object.fromEntries(value.map((item, i) => [String(i + 1), item])) : value,
    depth,
  );
}

/** A value in its JSON spelling; where its key carries a unit, followed by how people write it. */
function leaf(key: string, value: Json): Child {
  if (Array.isArray(value)) return value.map(String).join(" ");
  if (typeof value === "number") {
    const { text } = quantity(key, value);
    return text === String(value)
      ? text
      : h("span", {}, String(value), h("span", { class: "unit" }, ` ${text}`));
  }
  return String(value);
}
