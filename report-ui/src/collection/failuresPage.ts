// What went wrong, grouped by outcome and by what was said.

import { breakable, h, type Child } from "../dom";
import { controls, filter, inPieces, list, table } from "./controls";
import { frame } from "./frame";
import type { FailedTrial, FailureGroup, Site } from "./model";
import { cellTitle, when } from "./names";

const PIECE = 100;

export function failuresPage(root: HTMLElement, site: Site, groups: FailureGroup[]): void {
  const result = h("div", { "aria-live": "polite" });
  const names = [...new Set(groups.map(({ outcome }) => outcome))];
  const draw = () => result.replaceChildren(...content(site, groups, [outcome.value(), run.value()]));
  const outcome = filter("Outcome", "outcome", names, draw);
  const runs = site.runs.map(({ name }, i): [string, string] => [String(i + 1), name]);
  const run = list("Run", "run", [["", "all"], ...runs], draw);
  frame(root, site, "failures", "", groups.length > 0 && controls(outcome, run), result);
  draw();
}

function content(site: Site, groups: FailureGroup[], [outcome, run]: [string, string]): HTMLElement[] {
  const kept = groups
    .filter((group) => outcome === "" || group.outcome === outcome)
    .map((group) => ({
      ...group,
      trials: group.trials.filter((trial) => run === "" || trial.run === Number(run) - 1),
    }))
    .filter(({ trials }) => trials.length > 0);
  const count = (failed: boolean) =>
    kept.filter((group) => group.failed === failed).reduce((sum, { trials }) => sum + trials.length, 0);
  const all = site.runs.reduce(
    (sum, one, i) => sum + (run === "" || i === Number(run) - 1 ? one.trials : 0),
    0,
  );
  const offered =
    count(false) > 0 ? ` ${count(false)} asked for what a stack does not offer, which is no failure.` : "";
  const said = `${count(true)} of ${all} trials failed.${offered} Numbers in which details differ are shown as …`;
  return [
    h("p", { class: "said" }, said),
    ...kept.map((group, i) => section(site, group, i === 0 && kept.length < 4)),
  ];
}

function section(site: Site, group: FailureGroup, open: boolean): HTMLElement {
  const { trials } = group;
  const share = (key: "run" | "cell") => new Set(trials.map((one) => one[key])).size;
  const details = h(
    "details",
    { class: "failure-group", open },
    h(
      "summary",
      {},
      h("b", { class: group.failed ? "failure" : "" }, `${trials.length} × `, breakable(group.outcome)),
      ` ${group.detail}`,
      h("small", {}, ` in ${plural(share("run"), "run")}, ${plural(share("cell"), "cell")}`),
    ),
  );
  const fill = () => {
    if (details.childElementCount > 1) return;
    const rows = trials.map((trial) => () => row(site, trial));
    const heads = ["run", { text: "started, UTC" }, { text: "cell" }, "iteration", { text: "trial" }];
    details.append(
      group.example !== group.detail ? h("p", { class: "note" }, `As in: ${group.example}`) : "",
      inPieces(rows, PIECE, (made) => table(`Trials: ${group.outcome}`, heads, made)),
    );
  };
  details.addEventListener("toggle", fill);
  if (open) fill();
  return details;
}

function plural(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

function row(site: Site, trial: FailedTrial): HTMLElement {
  const run = site.runs[trial.run]!;
  const { pair, setting } = cellTitle(site, trial.cell);
  const name: Child = trial.href
    ? h("a", { href: trial.href }, breakable(trial.trial))
    : breakable(trial.trial);
  return h(
    "tr",
    {},
    h(
      "th",
      { scope: "row" },
      run.report ? h("a", { href: run.report }, breakable(run.name)) : breakable(run.name),
    ),
    h("td", { class: "time" }, when(run)),
    h("td", { class: "words" }, breakable(pair), h("small", {}, h("br"), setting)),
    h("td", {}, String(trial.iteration)),
    h("td", { class: "text" }, name),
  );
}
