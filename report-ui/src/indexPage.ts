// The first page: each scenario with its matrix and distributions, then failures and the manifest.

import { command, facts, h, type Child } from "./dom";
import { seconds } from "./format";
import { anchor, brand, name } from "./header";
import type { Json, Run } from "./model";
import { failedTrials, notApplicable, overview } from "./overview";
import { scenario } from "./scenario";
import { tree } from "./tree";

/** Draws the page; the answer takes its charts down again, for the page of a later state. */
export function indexPage(root: HTMLElement, run: Run): () => void {
  const sections = run.matrices.map((matrix) => scenario(run, matrix));
  root.replaceChildren(
    h(
      "header",
      { class: "page" },
      brand("index.html"),
      h("h1", {}, run.campaign, run.manifest.title !== "" && h("small", {}, ` ${run.manifest.title}`)),
      runFacts(run),
      ...commandLine(run),
      ...warnings(run),
    ),
    h("nav", { class: "contents", "aria-label": "Contents" }, ...contents(run)),
    h(
      "main",
      {},
      run.matrices.length === 0 && h("p", {}, "No trial of this run has finished yet."),
      run.matrices.length > 0 &&
        h("section", { id: "overview" }, h("h2", {}, "Overview"), overview(run), ...notApplicable(run)),
      ...sections.map((section) => section.element),
      failedTrials(run),
      h("section", { id: "manifest" }, h("h2", {}, "Manifest"), tree(run.manifest)),
    ),
    h("footer", {}, `Made by bentpipe ${run.version}.`),
  );
  for (const section of sections) section.start();
  showTarget();
  return () => sections.forEach((section) => section.stop());
}

/** The page is drawn after the browser has looked for the fragment of its address. */
function showTarget(): void {
  if (location.hash) document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
}

function runFacts(run: Run): HTMLElement {
  const { manifest } = run;
  const { host } = manifest;
  const cores = typeof host.cores === "number" ? `${host.cores} cores` : null;
  const machine = [host.cpu, cores, host.kernel]
    .filter((part) => part !== null && part !== undefined)
    .map(String)
    .join(", ");
  return facts(
    [
      ["seed", text(manifest.options.seed)],
      ["random draws", text(manifest.options.draws)],
      ["started", manifest.started !== "" && instant(manifest.started)],
      ["took", between(manifest.started, manifest.finished ?? null)],
      ["trials", run.planned === null ? String(run.trials) : `${run.trials} of ${run.planned}`],
      ["failed", h("span", { class: run.failed ? "failure" : "" }, String(run.failed))],
      ["machine", machine || null],
      ["bentpipe", text(manifest.versions.bentpipe)],
    ],
    "facts inline",
  );
}

function text(value: Json | undefined): Child {
  return value === null || value === undefined || typeof value === "object" ? null : String(value);
}

/** A UTC time without its fraction: 2026-03-01 10:20:30 UTC. What is no such time is left as it is. */
function instant(value: string): string {
  return value.replace(/^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(\.\d+)?(Z|\+00:00)$/, "$1 $2 UTC");
}

function between(from: string, to: string | null): string | null {
  if (to === null) return null;
  const s = (Date.parse(to) - Date.parse(from)) / 1000;
  return Number.isFinite(s)
    ? s < 100
      ? seconds(s)
      : `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`
    : null;
}

function commandLine({ manifest }: Run): HTMLElement[] {
  return manifest.command !== "" ? [command(manifest.command)] : [];
}

/** What readers must know before they trust the matrix: stacks that take no part, and those that broke the contract. */
function warnings({ manifest }: Run): HTMLElement[] {
  const lines = (value: Record<string, string>, text: (name: string, why: string) => string) =>
    Object.entries(value).map(([name, why]) => h("p", { class: "warning" }, text(name, why)));
  return [
    ...lines(manifest.left_out, (name, why) => `${name} takes no part: ${why}`),
    ...lines(manifest.contract_breaches, (name, why) => `${name} breaks the endpoint contract: ${why}`),
  ];
}

function contents(run: Run): HTMLElement[] {
  const links = run.matrices.map((matrix) => h("a", { href: `#${anchor(run, matrix)}` }, name(run, matrix)));
  if (run.failed) links.push(h("a", { href: "#failures" }, "Failures"));
  return [...links, h("a", { href: "#manifest" }, "Manifest")];
}
