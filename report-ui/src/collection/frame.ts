// What all pages of the site have: its name, the way between them, and the search.

import { h, type Child } from "../dom";
import { brand } from "../header";
import { address } from "./state";
import { stackOf } from "./series";
import type { Site } from "./model";

const PAGES: [page: string, name: string][] = [
  ["index", "Runs"],
  ["changes", "Changes"],
  ["compare", "Compare"],
  ["distributions", "Distributions"],
  ["failures", "Failures"],
  ["studies", "Studies"],
];

/** Put the page together; `here` is its name, `up` leads to the folder of the site. */
export function frame(root: HTMLElement, site: Site, here: string, up: string, ...content: Child[]): void {
  const heading = PAGES.find(([page]) => page === here)?.[1];
  const links = PAGES.filter(([page]) => page !== "studies" || site.studies.length > 0).map(([page, name]) =>
    h("a", { href: `${up}${page}.html`, "aria-current": page === here ? "page" : null }, name),
  );
  root.replaceChildren(
    h(
      "header",
      { class: "page collection" },
      h("div", { class: "crumbs" }, brand(`${up}index.html`), here !== "index" && h("span", {}, site.title)),
      search(site, up),
    ),
    h("nav", { class: "contents", "aria-label": "Pages" }, ...links),
    h("main", {}, heading && h("h1", {}, here === "index" ? site.title : heading), ...content),
    h("footer", {}, `Made by bentpipe ${site.bentpipe} from ${site.runs.length} runs.`),
  );
}

interface Entry {
  kind: string;
  name: string;
  /** What it is found by, beside its name. */
  words: string;
  href: string;
}

/** At most so many results are listed. */
const LISTED = 12;

function search(site: Site, up: string): HTMLElement {
  const found = h("ul", { class: "found-entries", "aria-label": "Results" });
  const said = h("p", { class: "note", role: "status" });
  const results = h("div", { class: "results", hidden: true }, found, said);
  const field = h("input", {
    type: "search",
    placeholder: "Search runs, stacks, scenarios, outcomes",
    "aria-label": "Search runs, stacks, scenarios, outcomes",
    autocomplete: "off",
  });
  let all: Entry[] | null = null;
  const show = () => {
    all ??= entries(site);
    const hits = matching(all, field.value);
    results.hidden = field.value.trim() === "";
    found.replaceChildren(
      ...hits
        .slice(0, LISTED)
        .map(({ kind, name, href }) =>
          h("li", {}, h("a", { href: `${up}${href}` }, h("span", { class: "kind" }, kind), ` ${name}`)),
        ),
    );
    said.textContent =
      hits.length === 0
        ? "Nothing is called so."
        : hits.length > LISTED
          ? `${hits.length - LISTED} more`
          : "";
  };
  field.addEventListener("input", show);
  field.addEventListener("focus", show);
  const box = h("div", { class: "search" }, field, results);
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape") results.hidden = true;
  });
  box.addEventListener("focusout", (event) => {
    if (!box.contains(event.relatedTarget as Node | null)) results.hidden = true;
  });
  return box;
}

/** What has all words of a search in it, whatever the case; what begins with the first one first. */
export function matching(all: Entry[], text: string): Entry[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  const hits = all.filter((one) => {
    const whole = `${one.kind} ${one.name} ${one.words}`.toLowerCase();
    return words.every((word) => whole.includes(word));
  });
  const begins = (one: Entry) => (one.name.toLowerCase().startsWith(words[0]!) ? 0 : 1);
  return hits.sort((a, b) => begins(a) - begins(b));
}

/** All that can be found. */
export function entries(site: Site): Entry[] {
  const unique = (names: string[]) => [...new Set(names)];
  const variants = unique(site.cells.flatMap(({ client, server }) => [client, server]));
  return [
    ...site.runs.map((run, i) => ({
      kind: "run",
      name: run.name,
      words: [run.heading, run.title, run.started, run.commit ?? "", ...run.testbeds].join(" "),
      href: address("index", { run: String(i + 1) }),
    })),
    ...unique(variants.map(stackOf)).map((name) => ({
      kind: "stack",
      name,
      words: unique(
        site.runs.flatMap((run) =>
          run.stacks.filter((one) => one.name === name).map((one) => one.version ?? ""),
        ),
      ).join(" "),
      href: address("changes", { stack: name }),
    })),
    ...variants
      .filter((name) => stackOf(name) !== name)
      .map((name) => ({
        kind: "variant",
        name,
        words: "",
        href: address("distributions", { server: name }),
      })),
    ...unique(site.cells.map(({ scenario }) => scenario)).map((name) => ({
      kind: "scenario",
      name,
      words: "",
      href: address("changes", { scenario: name }),
    })),
    ...site.outcomes
      .filter((name) => name !== "ok")
      .map((name) => ({ kind: "outcome", name, words: "", href: address("failures", { outcome: name }) })),
    ...site.studies.map((study) => ({
      kind: "study",
      name: study.title,
      words: `${study.name} ${study.question}`,
      href: study.pages[0]?.href ?? "studies.html",
    })),
  ];
}
