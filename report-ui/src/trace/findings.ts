// What went wrong in a trial: findings with their evidence and where to see it.

import { h, type Child } from "../dom";
import { duration, quantity } from "../format";
import { FACES } from "./kinds";
import type { Evidence } from "../schema/analysis";
import type { Finding, Trace } from "./model";
import { words } from "./option";
import { fragment } from "./window";

/** The list: what was found, and folded what is not sure and what was ruled out. */
export function findings({ trial, findings: all, unlike_record: { more, fewer } }: Trace): HTMLElement {
  const of = (verdict: Finding["verdict"]) => all.filter((one) => one.verdict === verdict);
  const list = (some: Finding[]) =>
    h("ul", { class: "findings" }, ...some.map((one) => item(trial, one, more.includes(one.rule))));
  const folded = (title: string, some: Finding[]) =>
    some.length > 0 && h("details", {}, h("summary", {}, `${title} (${some.length})`), list(some));
  const found = of("yes");
  return h(
    "div",
    {},
    found.length > 0 ? list(found) : h("p", {}, nothing(all)),
    fewer.length > 0 &&
      h(
        "p",
        { class: "note" },
        `The record of the trial, made without the endpoints’ qlogs, also names: ${fewer.map(words).join(", ")}. `,
        "With them this did not hold.",
      ),
    folded("Not sure", of("not_sure")),
    folded("Ruled out", of("no")),
  );
}

/** What is said where no flaw was found: that there is none needs a rule that could tell. */
function nothing(all: Finding[]): string {
  if (all.length === 0) return "No rule was applied to this trace.";
  return all.every((one) => one.verdict === "not_sure") ? "No rule could judge." : "No flaw was found.";
}

/** A finding; `alone` if the record of the trial, and so the matrix, does not have it. */
function item(trial: string, { verdict, title, text, evidence, plot }: Finding, alone: boolean): HTMLElement {
  const link =
    plot &&
    h(
      "a",
      {
        href: fragment({ trial, plot: plot.kind, span: { from: plot.from_s, to: plot.to_s } }),
        "aria-label": `${title}: show in the plot ${FACES[plot.kind].title}`,
      },
      `${FACES[plot.kind].title.toLowerCase()}, ${times(plot.from_s, plot.to_s)}`,
    );
  return h(
    "li",
    { class: verdict },
    h("b", {}, title),
    " ",
    text,
    " ",
    link && h("span", { class: "seen" }, "See ", link),
    alone && h("small", { class: "alone" }, " Not in the record, which knows no qlog."),
    evidence.length > 0 &&
      h("ul", { class: "evidence" }, ...evidence.map((one) => h("li", {}, ...proof(one)))),
  );
}

function proof({ what, at_s, until_s, value, unit }: Evidence): Child[] {
  const when = until_s === null ? `at ${duration(at_s)}` : times(at_s, until_s);
  return [what, h("b", {}, ` ${amountOf(value, unit)}`), h("small", {}, ` ${when}`)];
}

/** A value with its unit; those that keys of records carry are shown as everywhere else. */
function amountOf(value: number, unit: string): string {
  if (unit === "s") return duration(value);
  if (unit === "ms") return duration(value / 1e3);
  if (unit === "bytes" || unit === "bps") return quantity(`_${unit}`, value).text;
  const number = String(Number(value.toPrecision(4)));
  return unit ? `${number}\u202f${unit}` : number;
}

function times(from: number, to: number): string {
  return `${duration(from)} to ${duration(to)}`;
}
