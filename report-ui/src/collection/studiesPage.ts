// The studies, and the page of one.

import { h } from "../dom";
import { frame } from "./frame";
import type { Site } from "./model";

export function studiesPage(root: HTMLElement, site: Site): void {
  frame(
    root,
    site,
    "studies",
    "",
    site.studies.length === 0 && h("p", {}, "This site was made without studies."),
    ...site.studies.map((study) =>
      h(
        "section",
        { class: "study-entry" },
        h("h2", {}, h("a", { href: study.pages[0]?.href ?? null }, study.title)),
        h("p", {}, study.question),
        study.pages.length > 1 &&
          h(
            "p",
            { class: "note" },
            "Also: ",
            ...study.pages
              .slice(1)
              .flatMap((page, i) => [i > 0 && ", ", h("a", { href: page.href }, page.title)]),
          ),
      ),
    ),
  );
}

/** The text stands in the page already, so that it can be read without scripts. */
export function studyPage(root: HTMLElement, site: Site): void {
  frame(root, site, "study", "../", document.getElementById("study"));
  if (location.hash) document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
}
