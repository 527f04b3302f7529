// Lists and fields with their labels, whose choices are kept in the address.

import { h, type Child } from "../dom";
import { choose, chosen } from "./state";

export interface Control {
  element: HTMLElement;
  value: () => string;
  set: (value: string) => void;
}

/** A list of which one is chosen: as the address says, if that is in it, else the first. `act` is called on changes. */
export function list(
  label: string,
  key: string,
  options: [value: string, text: string][],
  act: () => void,
): Control {
  const field = h("select", { name: key }, ...options.map(([value, text]) => h("option", { value }, text)));
  const kept = chosen(key);
  if (kept !== null && options.some(([value]) => value === kept)) field.value = kept;
  field.addEventListener("change", () => {
    choose(key, field.value);
    act();
  });
  return {
    element: h("label", { class: "control" }, h("span", {}, label), field),
    value: () => field.value,
    set: (value) => {
      field.value = value;
      choose(key, value);
    },
  };
}

/** A list that begins with `all`, whose value is empty. */
export function filter(label: string, key: string, names: string[], act: () => void): Control {
  const options = [...new Set(names)].map((name): [string, string] => [name, name]);
  return list(label, key, [["", "all"], ...options], act);
}

/** A box to tick. */
export function tick(label: string, key: string, act: () => void): Control {
  const field = h("input", { type: "checkbox", name: key });
  field.checked = chosen(key) === "yes";
  field.addEventListener("change", () => {
    choose(key, field.checked ? "yes" : "");
    act();
  });
  return {
    element: h("label", { class: "control tick" }, field, h("span", {}, label)),
    value: () => (field.checked ? "yes" : ""),
    set: (value) => {
      field.checked = value === "yes";
      choose(key, value);
    },
  };
}

export function controls(...all: Control[]): HTMLElement {
  return h("div", { class: "collection-controls" }, ...all.map(({ element }) => element));
}

/** A column's head; `text` stands on the left, as that below it. */
export type Head = string | { text: string };

/** A table of rows, in the box that it is scrolled in. */
export function table(label: string, heads: Head[], rows: HTMLElement[]): HTMLElement {
  const head = (one: Head, i: number) =>
    typeof one === "string"
      ? h("th", { scope: "col", class: i === 0 ? "text" : null }, one)
      : h("th", { scope: "col", class: "text" }, one.text);
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": label },
    h("table", { class: "data" }, h("thead", {}, h("tr", {}, ...heads.map(head))), h("tbody", {}, ...rows)),
  );
}

/** The first of many rows, and a button that shows so many more. */
export function inPieces(
  rows: (() => HTMLElement)[],
  size: number,
  show: (rows: HTMLElement[]) => HTMLElement,
): HTMLElement {
  let shown = 0;
  const first = rows.slice(0, size).map((make) => make());
  shown = first.length;
  const whole = show(first);
  if (rows.length <= size) return whole;
  const body = whole.querySelector("tbody") ?? whole;
  const button = h("button", { type: "button", class: "more" });
  const say = () =>
    (button.textContent = `Show ${Math.min(size, rows.length - shown)} more of ${rows.length - shown}`);
  button.addEventListener("click", () => {
    body.append(...rows.slice(shown, shown + size).map((make) => make()));
    shown = Math.min(rows.length, shown + size);
    button.hidden = shown === rows.length;
    say();
  });
  say();
  return h("div", {}, whole, button);
}

/** What takes the place of what a part of the page showed, and what to do once it stands there. */
export interface Drawn {
  nodes: Child[];
  start?: () => void;
}

/** A function that draws a part of the page anew; of several calls the last one counts. */
export function redrawing(part: HTMLElement, make: () => Promise<Drawn>): () => void {
  let last = 0;
  return () => {
    const own = ++last;
    part.setAttribute("aria-busy", "true");
    void make().then(({ nodes, start }) => {
      if (own !== last) return;
      part.replaceChildren(...nodes.filter((node) => node instanceof Node || typeof node === "string"));
      part.removeAttribute("aria-busy");
      start?.();
    });
  };
}
