// The path as a drawing: client, terminal, satellite, gateway and server, with what the links have.

import { h, svg } from "../dom";
import type { Json } from "../model";
import type { ExploredState, PathOfState } from "../schema/explore";
import { megabits, milliseconds, percents, queue, queueText, rain } from "./knobs";

const [WIDTH, HEIGHT] = [720, 190];
const GROUND = 142;
const AT = { client: 50, terminal: 205, satellite: 360, gateway: 515, server: 670 };
const TOP = 34;

export function diagram(): {
  element: HTMLElement;
  /** Draw this path; it is pale where it is not (yet) that of the state. */
  show: (state: ExploredState, path: PathOfState | null, isCurrent: boolean) => void;
} {
  const element = h("div", { class: "diagram" });
  return {
    element,
    show: (state, path, isCurrent) => {
      element.classList.toggle("stale", !isCurrent);
      element.replaceChildren(drawn(state, path), told(path));
    },
  };
}

type Link = { [key: string]: Json };

function segment(path: PathOfState | null, name: string, way: "forward" | "return"): Link {
  const found = path?.scenario[name] as { [way: string]: Link } | undefined;
  return found?.[way] ?? {};
}

/** What a link has, in the order in which people say it. */
export function words(link: Link): string[] {
  const rate = megabits(link["rate"]);
  const delay = milliseconds(link["delay"]);
  const waits = queue(link["queue"]);
  const loss = percents(link["loss"]);
  const aqm = waits && waits.discipline !== "drop-tail" ? `, ${waits.discipline}` : "";
  return [
    rate === null ? (link["rate"] ? "a rate that varies" : "") : `${rate} Mbit/s`,
    delay === null ? (link["delay"] ? "a delay that varies" : "") : `${delay} ms`,
    waits ? `queue ${queueText({ ...waits, discipline: "drop-tail", more: "" })}${aqm}` : "",
    loss === null ? "bursts of loss" : loss > 0 ? `loss ${loss} %` : "",
  ].filter(Boolean);
}

function drawn(state: ExploredState, path: PathOfState | null): SVGElement {
  const { dB } = rain(state);
  const treated = state.senders.some(({ treatment }) => treatment !== "direct");
  const [access, ground] = ["access", "ground"].map((name) => words(segment(path, name, "forward")));
  const line = (x1: number, y1: number, x2: number, y2: number, name = "wire") =>
    svg("line", { x1, y1, x2, y2, class: name });
  return svg(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": described(path, dB) },
    line(AT.client, GROUND, AT.terminal, GROUND),
    line(AT.gateway, GROUND, AT.server, GROUND),
    line(AT.terminal, GROUND, AT.satellite, TOP, "beam"),
    line(AT.satellite, TOP, AT.gateway, GROUND, "beam"),
    ...(dB > 0 ? rainDrawn(dB) : []),
    svg("circle", { cx: AT.satellite, cy: TOP, r: 11, class: "satellite" }),
    label(AT.satellite, TOP - 18, "satellite"),
    ...(["client", "terminal", "gateway", "server"] as const).flatMap((name) => [
      svg("rect", { x: AT[name] - 9, y: GROUND - 9, width: 18, height: 18, rx: 3, class: "host" }),
      label(AT[name], GROUND + 28, name),
    ]),
    ...(treated
      ? [AT.terminal, AT.gateway].map((cx) => svg("circle", { cx, cy: GROUND, r: 4, class: "proxy" }))
      : []),
    label((AT.client + AT.terminal) / 2, GROUND - 14, access!.join(", "), "muted"),
    label((AT.gateway + AT.server) / 2, GROUND - 14, ground!.join(", "), "muted"),
  );
}

function label(x: number, y: number, text: string, name = ""): SVGElement {
  return svg("text", { x, y, "text-anchor": "middle", class: name }, text);
}

/** A cloud over the terminal, the darker the more it rains. */
function rainDrawn(dB: number): SVGElement[] {
  const [x, y] = [AT.terminal - 2, 62];
  const cloud = `M${x - 24} ${y}a12 12 0 0 1 6-22a16 16 0 0 1 30-4a13 13 0 0 1 10 26z`;
  const drops = [-14, -2, 10, 22].map((dx) =>
    svg("line", { x1: x + dx, y1: y + 6, x2: x + dx - 5, y2: y + 6 + Math.min(22, 8 + dB), class: "drop" }),
  );
  return [svg("path", { d: cloud, class: "cloud", opacity: 0.35 + Math.min(0.6, dB / 25) }), ...drops];
}

/** The links of the satellite in words, each way. */
function told(path: PathOfState | null): HTMLElement {
  const way = (name: string, which: "forward" | "return") =>
    h("div", {}, h("dt", {}, name), h("dd", {}, words(segment(path, "satellite", which)).join(" · ") || "…"));
  return h(
    "dl",
    { class: "ways" },
    way("← forward, to the client", "forward"),
    way("→ return, to the server", "return"),
  );
}

function described(path: PathOfState | null, dB: number): string {
  const parts = (["forward", "return"] as const).map(
    (way) => `${way} ${words(segment(path, "satellite", way)).join(", ")}`,
  );
  const weather = dB > 0 ? `, rain of ${dB} dB` : "";
  return `Path: client, terminal, satellite, gateway, server; ${parts.join("; ")}${weather}`;
}
