// The panel beside a cell that has the pointer or the focus.

import { breakable, h } from "./dom";
import { duration, goodput, maybe, NO_GOODPUT, percent } from "./format";
import type { Cell, Spread } from "./model";
import { FRAME_MEASURES } from "./frames";
import { MEASURES } from "./live";
import { timesOf } from "./page";

const ID = "cell-tooltip";

/** Show the numbers behind `cell` while `anchor` has the pointer or the focus. */
export function attach(anchor: HTMLElement, cell: Cell): void {
  anchor.setAttribute("aria-describedby", ID);
  for (const event of ["mouseenter", "focus"]) anchor.addEventListener(event, () => show(anchor, cell));
  for (const event of ["mouseleave", "blur"]) anchor.addEventListener(event, hide);
  anchor.addEventListener("keydown", (event) => event.key === "Escape" && hide());
}

function panel(): HTMLElement {
  const found = document.getElementById(ID);
  if (found) return found;
  const made = h("div", { id: ID, class: "tooltip", role: "tooltip", hidden: true });
  document.body.append(made);
  addEventListener("scroll", hide, { capture: true, passive: true });
  return made;
}

function hide(): void {
  panel().hidden = true;
}

function show(anchor: HTMLElement, cell: Cell): void {
  const target = panel();
  target.replaceChildren(...content(cell));
  target.hidden = false;
  const [at, own] = [anchor.getBoundingClientRect(), target.getBoundingClientRect()];
  const below = at.bottom + 8 + own.height < innerHeight || at.top < own.height + 8;
  target.style.top = `${below ? at.bottom + 8 : at.top - own.height - 8}px`;
  target.style.left = `${Math.max(8, Math.min(at.left, document.documentElement.clientWidth - own.width - 8))}px`;
}

function content(cell: Cell): Node[] {
  const { goodput_bps, completion_s, handshake_s, share_of_limit } = cell.spreads;
  const { spreads } = cell;
  const isPage = spreads.plt_s !== null;
  const ofStreams =
    spreads.media_rate_bps !== null ? MEASURES : spreads.frames !== null ? FRAME_MEASURES : [];
  const times = isPage
    ? timesOf((column) => spreads[column] !== null).map(([column, name]) =>
        row(name, spreads[column], duration),
      )
    : ofStreams.length > 0
      ? ofStreams.map(([column, name, show]) => row(name, spreads[column], show))
      : [row("goodput", goodput_bps, goodput), row("completion", completion_s, duration)];
  const rows = [
    ...times,
    row("handshake", handshake_s, duration),
    row("share of limit", share_of_limit, percent),
  ];
  const succeeded = cell.trials.filter((trial) => trial.outcome === "ok").length;
  const silent = succeeded > 0 && goodput_bps === null && !isPage && ofStreams.length === 0;
  const heads = ["", "min", "median", "max"].map((text) => h("th", { scope: "col" }, text));
  return [
    h(
      "p",
      { class: "pair" },
      h("b", {}, cell.client),
      " client, ",
      h("b", {}, cell.server),
      " server",
      cell.h3 && ", over HTTP/3",
    ),
    h("p", {}, `${succeeded} of ${cell.trials.length} iterations succeeded`),
    ...(succeeded > 0
      ? [h("table", {}, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...rows))]
      : []),
    ...(silent ? [h("p", {}, `${NO_GOODPUT}.`)] : []),
    ...reasons(cell),
    ...flaws(cell),
  ];
}

function row(name: string, spread: Spread | null, show: (value: number) => string): HTMLElement {
  const known = spread ? [spread.min, spread.median, spread.max] : [null, null, null];
  const values = known.map((value) => maybe(value, show));
  return h("tr", {}, h("th", { scope: "row" }, name), ...values.map((text) => h("td", {}, text)));
}

/** The first detail of each kind of failure. */
function reasons(cell: Cell): HTMLElement[] {
  return cell.failures.map(([outcome, count]) => {
    const detail = cell.trials.find((trial) => trial.outcome === outcome && trial.detail)?.detail;
    return h(
      "p",
      { class: "failure" },
      `${count}× `,
      h("b", {}, breakable(outcome)),
      detail ? `: ${detail}` : "",
    );
  });
}

/** What went wrong on the wire. */
function flaws({ findings, trials }: Cell): HTMLElement[] {
  if (findings.length === 0) return [];
  const list = findings.map(([rule, count]) => `${rule.replaceAll("_", " ")} (${count} of ${trials.length})`);
  return [h("p", { class: "flaws" }, h("b", {}, "Findings: "), list.join(", "))];
}
