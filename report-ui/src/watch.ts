// The report of a run under way: the server says when there is a new state of it, and the page draws that.

import { h } from "./dom";
import { indexPage } from "./indexPage";
import type { Run } from "./model";
import { runScript } from "./script";

/** What the server says of the run, at once and whenever that changes. */
interface State {
  version: number;
  finished: boolean;
  run: string;
}

/** Tell the server, by a connection to this place, that its page is open. */
export function watched(place: string): WebSocket {
  const address = new URL(place, location.href.split("#")[0]);
  address.protocol = "ws:";
  return new WebSocket(address);
}

/** Draw the page of a run, or (null) of one without a trial yet, and keep it as the run is; it is of this version. */
export function watch(root: HTMLElement, first: Run | null, version: number): void {
  const status = h("p", { class: "watching", role: "status" });
  root.before(status);
  let stop = first ? indexPage(root, first) : waiting(root);
  let shown: State | null = null;
  const show = async (state: State) => {
    const before = shown;
    shown = state;
    if (before ? before.run !== state.run : version !== state.version) return location.reload();
    status.textContent = state.finished
      ? "The run is complete."
      : "The run is under way: this page follows it.";
    if (!before || before.version === state.version) return;
    if (!first) return location.reload();
    const run = await runScript(`data/run.js?version=${state.version}`, take, "report");
    const [chosen, at] = [pressed(root), scrollY];
    stop();
    stop = indexPage(root, run);
    press(root, chosen);
    scrollTo({ top: at, behavior: "instant" });
  };
  const socket = watched("live");
  socket.addEventListener("message", ({ data }) => void show(JSON.parse(String(data)) as State));
  socket.addEventListener("close", () => {
    status.textContent =
      "The command has ended. This page stays as it is; bentpipe report makes one to keep.";
  });
}

function waiting(root: HTMLElement): () => void {
  root.replaceChildren(
    h("main", {}, h("h1", {}, "No trial has ended yet"), h("p", {}, "This page waits for the first one.")),
  );
  return () => undefined;
}

function take(): Run | undefined {
  return window.bentpipeRun;
}

/** The buttons that are down, each by the row of choices that it is in and its text. */
function pressed(root: HTMLElement): string[] {
  return [...root.querySelectorAll('.choices [aria-pressed="true"]')].map(name);
}

function press(root: HTMLElement, chosen: string[]): void {
  for (const button of root.querySelectorAll<HTMLElement>('.choices [aria-pressed="false"]')) {
    if (chosen.includes(name(button))) button.click();
  }
}

function name(button: Element): string {
  const [section, row] = [button.closest("section"), button.closest(".choices")];
  return [section?.id, row?.getAttribute("aria-label"), button.textContent].join(" ");
}
