// Building elements. Text only ever becomes a text node, so names from outside cannot become markup.

type Attributes = { [name: string]: string | number | boolean | null | undefined };
export type Child = Node | string | null | undefined | false;

/** An element; attributes that are false, null or undefined are left out. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  setAttributes(element, attributes);
  append(element, children);
  return element;
}

/** An SVG element. */
export function svg(tag: string, attributes: Attributes = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  setAttributes(element, attributes);
  append(element, children);
  return element;
}

function setAttributes(element: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? "" : String(value));
  }
}

function append(element: Element, children: Child[]): void {
  for (const child of children) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
}

/** Names up to this length fit wherever they stand. */
const UNBROKEN = 13;

/** A word such as `transfer_timeout` that may wrap behind its underscores, if it is long. */
export function breakable(word: string): DocumentFragment {
  const fragment = document.createDocumentFragment();
  const parts = word.length > UNBROKEN ? word.split(/(?<=[_,=.-])/) : [word];
  parts.forEach((part, i) => fragment.append(...(i ? [h("wbr"), part] : [part])));
  return fragment;
}

/** A list of terms and their values; values that are null are left out. */
export function facts(entries: [term: string, value: Child][], name: string): HTMLElement {
  const shown = entries.filter(([, value]) => value !== null && value !== undefined && value !== false);
  return h(
    "dl",
    { class: name },
    ...shown.map(([term, value]) => h("div", {}, h("dt", {}, term), h("dd", {}, value))),
  );
}

/** Text to copy, with a button. */
export function command(text: string): HTMLElement {
  const code = h("code", { tabindex: 0 }, text);
  const button = h("button", { type: "button", class: "copy" }, "Copy");
  button.addEventListener("click", () => {
    // The clipboard interface is missing where the page is not a secure context; a selection always works.
    const done = (said: string) => {
      button.textContent = said;
      setTimeout(() => (button.textContent = "Copy"), 1500);
    };
    const select = () => {
      getSelection()?.selectAllChildren(code);
      done(document.execCommand("copy") ? "Copied" : "Selected");
    };
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(() => done("Copied"), select);
    else select();
  });
  return h("div", { class: "command" }, code, button);
}
