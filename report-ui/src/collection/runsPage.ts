// The first page: the runs over time, and the versions of stacks.

import { breakable, facts, h, type Child } from "../dom";
import { programs } from "./comparison";
import { table } from "./controls";
import { frame } from "./frame";
import type { RunEntry, Site } from "./model";
import { when } from "./names";
import { address, chosen } from "./state";

export function runsPage(root: HTMLElement, site: Site): void {
  const order = site.runs.map((_, i) => i).reverse(); // the newest first
  frame(
    root,
    site,
    "index",
    "",
    totals(site),
    ...site.skipped.map(({ folder, why }) =>
      h("p", { class: "warning" }, h("b", {}, folder), ` is left out: ${why}`),
    ),
    h(
      "section",
      { id: "runs" },
      h("h2", {}, "Over time"),
      h(
        "p",
        { class: "note" },
        "The newest first. A run's name leads to its report. ",
        h("b", {}, "new"),
        " marks a stack whose version or sources differ from the run before in which it was.",
      ),
      table(
        "Runs over time",
        [
          "started, UTC",
          { text: "run" },
          { text: "testbed" },
          { text: "bentpipe" },
          { text: "stacks" },
          "trials",
          "failed",
          "with the one before",
        ],
        order.map((i) => row(site, i)),
      ),
    ),
    h("section", { id: "stacks" }, h("h2", {}, "Stacks"), stacks(site)),
    h("section", { id: "scenarios" }, h("h2", {}, "Scenarios"), scenarios(site)),
  );
  document.getElementById(`run-${chosen("run")}`)?.scrollIntoView({ block: "center" });
}

function totals(site: Site): HTMLElement {
  const sum = (of: (run: RunEntry) => number) => site.runs.reduce((total, run) => total + of(run), 0);
  const failed = sum((run) => run.failed);
  return facts(
    [
      ["runs", String(site.runs.length)],
      ["trials", String(sum((run) => run.trials))],
      ["failed", h("span", { class: failed ? "failure" : "" }, String(failed))],
      ["cells", String(site.cells.length)],
      ["stacks", String(new Set(site.runs.flatMap((run) => run.stacks.map(({ name }) => name))).size)],
      ["scenarios", String(new Set(site.cells.map(({ scenario }) => scenario)).size)],
    ],
    "figures",
  );
}

function row(site: Site, i: number): HTMLElement {
  const run = site.runs[i]!;
  const named: Child = run.report ? h("a", { href: run.report }, breakable(run.name)) : breakable(run.name);
  const more = [
    run.heading !== run.name && run.heading,
    run.title,
    run.finished === null && "not finished",
    !run.report && "no report",
  ].filter((text) => typeof text === "string" && text !== "") as string[];
  const before = previous(site, i);
  return h(
    "tr",
    { id: `run-${i + 1}`, class: chosen("run") === String(i + 1) ? "chosen" : null },
    h("td", { class: "time" }, when(run)),
    h("th", { scope: "row", class: "words" }, named, ...more.map((text) => h("small", {}, h("br"), text))),
    h("td", { class: "text" }, `${run.testbeds.join(", ")}${run.ip === 4 ? "" : `, IPv${run.ip}`}`),
    h(
      "td",
      { class: "text" },
      run.bentpipe ?? "–",
      run.commit && h("small", { title: run.commit }, h("br"), shortCommit(run.commit)),
    ),
    h("td", { class: "words" }, stackList(site, i)),
    h("td", {}, String(run.trials)),
    h("td", { class: run.failed ? "failure" : "" }, run.failed ? failures(run, i) : "0"),
    h(
      "td",
      {},
      before === null
        ? "–"
        : h("a", { href: address("compare", { a: key(site, before), b: key(site, i) }) }, "compare"),
    ),
  );
}

function key(site: Site, i: number): string {
  return site.runs[i]!.name;
}

function shortCommit(commit: string): string {
  return commit.slice(0, 8) + (commit.endsWith("-dirty") ? ", with changes" : "");
}

function failures(run: RunEntry, i: number): HTMLElement {
  const title = Object.entries(run.outcomes)
    .filter(([name]) => name !== "ok" && name !== "unsupported")
    .map(([name, count]) => `${count} ${name}`)
    .join(", ");
  return h(
    "a",
    { class: "failure", title, href: address("failures", { run: String(i + 1) }) },
    String(run.failed),
  );
}

/** The run before that has a cell in common, of the same campaign if there is one. */
export function previous(site: Site, i: number): number | null {
  const run = site.runs[i];
  if (!run) return null;
  const cells = new Set(run.cells);
  const alike = site.runs
    .slice(0, i)
    .map((one, place) => ({ one, place }))
    .filter(({ one }) => one.cells.some((cell) => cells.has(cell)));
  return (alike.findLast(({ one }) => one.campaign === run.campaign) ?? alike.at(-1))?.place ?? null;
}

function stackList(site: Site, i: number): HTMLElement {
  const run = site.runs[i]!;
  return h(
    "ul",
    { class: "stacks" },
    ...run.stacks.map((stack) => {
      const before = site.runs
        .slice(0, i)
        .findLast((one) => one.stacks.some(({ name }) => name === stack.name));
      const changed = before && programs(before, run).find(({ name }) => name === stack.name);
      return h(
        "li",
        {},
        h("a", { href: address("changes", { stack: stack.name }) }, stack.name),
        h("small", {}, ` ${stack.version ?? "?"}`),
        changed && h("b", { class: "mark", title: `${changed.from} → ${changed.to}` }, " new"),
      );
    }),
  );
}

/** Each stack with the versions and builds that it had, from the first run to the last. */
function stacks(site: Site): HTMLElement {
  const names = [...new Set(site.runs.flatMap((run) => run.stacks.map(({ name }) => name)))].sort();
  const rows = names.map((name) => {
    const versions: string[] = [];
    let [count, trials] = [0, 0];
    for (const run of site.runs) {
      const stack = run.stacks.find((one) => one.name === name);
      if (!stack) continue;
      count++;
      trials += run.trials;
      const text = `${stack.version ?? "?"}${stack.build ? ` (${stack.build})` : ""}`;
      if (versions.at(-1) !== text) versions.push(text);
    }
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, h("a", { href: address("changes", { stack: name }) }, name)),
      h("td", { class: "words" }, versions.join(" → ")),
      h("td", {}, String(count)),
      h("td", {}, String(trials)),
    );
  });
  return h(
    "div",
    {},
    h(
      "p",
      { class: "note" },
      "Versions in the order of the runs; in brackets the hash of the sources, where it is known.",
    ),
    table("Stacks", ["stack", { text: "versions" }, "runs", "trials of these"], rows),
  );
}

function scenarios(site: Site): HTMLElement {
  const names = [...new Set(site.cells.map(({ scenario }) => scenario))].sort();
  const rows = names.map((name) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, breakable(name)),
      h(
        "td",
        { class: "words" },
        h("a", { href: address("changes", { scenario: name }) }, "changes"),
        ", ",
        h("a", { href: address("distributions", { scenario: name }) }, "distributions"),
      ),
      h("td", {}, String(site.runs.filter((run) => run.scenarios.includes(name)).length)),
      h("td", {}, String(site.cells.filter(({ scenario }) => scenario === name).length)),
    ),
  );
  return table("Scenarios", ["scenario", { text: "look at" }, "runs", "cells"], rows);
}
