// A row of buttons of which one is chosen.

import { h } from "./dom";

/** Buttons of which one is down; the first at the beginning. */
export function choice<T extends string>(label: string, values: readonly [T, ...T[]]): Choice<T> {
  const listeners: ((value: T) => void)[] = [];
  const buttons = values.map((value) =>
    h("button", { type: "button", "aria-pressed": String(value === values[0]) }, value),
  );
  values.forEach((value, i) =>
    buttons[i]?.addEventListener("click", () => {
      buttons.forEach((other, k) => other.setAttribute("aria-pressed", String(k === i)));
      listeners.forEach((listener) => listener(value));
    }),
  );
  const element = h(
    "div",
    { class: "choices", role: "group", "aria-label": label },
    h("span", {}, label),
    ...buttons,
  );
  return { element, onChange: (listener) => listeners.push(listener) };
}

interface Choice<T> {
  element: HTMLElement;
  onChange: (listener: (value: T) => void) => void;
}
