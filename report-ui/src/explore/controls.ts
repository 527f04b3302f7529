// Fields and sliders, each a label with native elements, so that keys and screen readers work as everywhere.

import { h, type Child } from "../dom";
import { placeOf, rounded, valueAt, type Scale } from "./knobs";

/** Places of a slider. */
const PLACES = 400;

/** A control that shows a value, and says when its reader changes it; `moving` while a slider is held. */
export interface Control<T> {
  element: HTMLElement;
  show: (value: T) => void;
}
export type Changed<T> = (value: T, moving: boolean) => void;

let last = 0;
export const id = () => `control-${++last}`;

/** A slider beside a field for the exact number; null shows that the value is none that a slider has. */
export function knob(
  name: string,
  unit: Child,
  scale: Scale | (() => Scale),
  changed: Changed<number>,
): Control<number | null> {
  const range = h("input", { type: "range", min: 0, max: PLACES, step: 1, id: id() });
  const field = h("input", { type: "number", min: 0, step: "any", "aria-label": `${name}, exactly` });
  const of = () => (typeof scale === "function" ? scale() : scale);
  const fromRange = () => rounded(valueAt(Number(range.value) / PLACES, of()));
  const say = (moving: boolean) => {
    const value = fromRange();
    field.value = String(value);
    changed(value, moving);
  };
  range.addEventListener("input", () => say(true));
  range.addEventListener("change", () => say(false));
  field.addEventListener("change", () => {
    const value = Number(field.value);
    if (field.value !== "" && Number.isFinite(value) && value >= 0) changed(value, false);
  });
  const element = h(
    "div",
    { class: "knob" },
    h("label", { for: range.id }, name),
    range,
    h("span", { class: "amount" }, field, unit),
  );
  const show = (value: number | null) => {
    element.classList.toggle("unknown", value === null);
    field.placeholder = value === null ? "varies" : "";
    range.setAttribute("aria-valuetext", value === null ? "varies" : `${value}`);
    if (document.activeElement !== field) field.value = value === null ? "" : String(value);
    if (value !== null) range.value = String(Math.round(placeOf(value, of()) * PLACES));
  };
  return { element, show };
}

/** A list of names to choose from; one that is not among them is shown nevertheless. */
export function list(
  name: string,
  options: readonly { name: string; title?: string }[],
  changed: (value: string) => void,
): Control<string> {
  const select = h(
    "select",
    { id: id() },
    ...options.map((one) =>
      h("option", { value: one.name }, one.title ? `${one.name}: ${one.title}` : one.name),
    ),
  );
  select.addEventListener("change", () => changed(select.value));
  const show = (value: string) => {
    if (![...select.options].some((one) => one.value === value)) {
      select.append(h("option", { value }, value));
    }
    select.value = value;
  };
  return { element: h("div", { class: "field" }, h("label", { for: select.id }, name), select), show };
}

/** A text with suggestions. */
export function text(
  name: string,
  suggestions: readonly { name: string; title?: string }[],
  changed: (value: string) => void,
  hint = "",
): Control<string> & { input: HTMLInputElement } {
  const known = id();
  const input = h("input", {
    type: "text",
    id: id(),
    list: known,
    placeholder: hint,
    spellcheck: "false",
    autocomplete: "off",
  });
  const options = suggestions.map((one) => h("option", { value: one.name }, one.title ?? ""));
  input.addEventListener("change", () => changed(input.value.trim()));
  const element = h(
    "div",
    { class: "field" },
    h("label", { for: input.id }, name),
    input,
    h("datalist", { id: known }, ...options),
  );
  return { element, input, show: (value) => void (input.value = value) };
}
