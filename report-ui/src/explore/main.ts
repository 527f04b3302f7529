// The entry of the bundle of `bentpipe explore`: the page, and what becomes of its reader's changes.

import "../report.css";
import "../trace/trace.css";
import "./explore.css";
import { saveFile } from "../chart";
import { h } from "../dom";
import { fail } from "../fail";
import { brand } from "../header";
import type { ExploredState, Offer, PathOfState, Reply } from "../schema/explore";
import { diagram } from "./diagram";
import { pathPanel } from "./pathPanel";
import { Results } from "./results";
import { senderPanel } from "./senderPanel";
import { Connection } from "./socket";
import { fragment, History, stateOf, withSender } from "./state";
import { toolbar } from "./toolbar";

/** What came of each change, for those who measure it: see benches/explore.py. */
declare global {
  interface Window {
    bentpipeExplore?: { asked: number; drawn: number; done: number; latency_ms: number };
  }
}

const root = document.getElementById("report");
if (!root) fail("the page is not whole; load it again");
else start(root);

function start(root: HTMLElement): void {
  const measured = (window.bentpipeExplore = { asked: 0, drawn: 0, done: 0, latency_ms: 0 });
  const banner = h("p", { class: "banner", role: "alert", hidden: true });
  const results = new Results();
  let page: Page | null = null;
  let changedAt = 0;
  let played: ExploredState | null = null; // what the newest request asked for
  let missing = 0; // first trials of the newest request that have not come
  let drawings: Promise<boolean>[] = []; // of the newest request
  const address = new URL("live", location.href.split("#")[0]);
  address.protocol = "ws:";
  const connection = new Connection(address.href, {
    connected: (is) => {
      banner.hidden = is;
      if (!is)
        banner.textContent =
          "The server does not answer. It has ended, unless this page finds it again: bentpipe explore starts one.";
    },
    reply: (reply) => void take(reply),
  });
  root.replaceChildren(
    h("header", { class: "page" }, brand("#"), h("p", { role: "status" }, "Looking for the stacks …")),
    banner,
  );

  const ask = (state: ExploredState, atOnce: boolean) => {
    measured.asked++;
    connection.ask(state, atOnce);
  };

  async function take(reply: Reply): Promise<void> {
    if (reply.offer) {
      if (!page) {
        page = build(root!, banner, results, reply.offer, ask);
        addEventListener("hashchange", () => page?.follow());
      }
      page.play();
      return;
    }
    if (!page || !played) return;
    if (reply.path) page.path(reply.path, played);
    if (reply.trial && reply.sender !== null) {
      const isCurrent = () => connection.isNewest(reply.number);
      const drawing = results.trial(reply.sender, reply.trial, isCurrent);
      drawings.push(drawing);
      if (await drawing) arrived();
    }
    if (reply.problem) {
      results.problem(reply.sender, reply.problem);
      for (let i = reply.sender === null ? played.senders.length : 1; i > 0; i--) arrived();
    }
    if (reply.band && reply.sender !== null) results.band(reply.sender, reply.band);
    if (reply.kind === "done") {
      // A trace is unpacked after its reply has come: that of the last trial may still be under way.
      await Promise.allSettled(drawings);
      if (!connection.isNewest(reply.number)) return;
      results.done();
      measured.done++;
    }
  }

  /** The first trial of a sender is drawn; with that of the last, once the browser has painted, time is taken. */
  function arrived(): void {
    if (missing === 0 || --missing > 0) return; // a further seed's problem was not waited for
    connection.settled();
    requestAnimationFrame(() => {
      measured.latency_ms = performance.now() - changedAt;
      measured.drawn++;
    });
  }

  connection.onSend = (state, askedAt) => {
    played = state;
    changedAt = askedAt;
    missing = state.senders.length;
    drawings = [];
    results.begin(state.senders.map(({ server, treatment, workload }) => named(server, treatment, workload)));
  };
}

function named(server: string, treatment: string, workload: string): string {
  return [server, ...(treatment === "direct" ? [] : [treatment]), workload].join(", ");
}

interface Page {
  /** The path of this state has come. */
  path: (path: PathOfState, of: ExploredState) => void;
  /** Play the present state. */
  play: () => void;
  /** The address has changed: take its state. */
  follow: () => void;
}

function build(
  root: HTMLElement,
  banner: HTMLElement,
  results: Results,
  offer: Offer,
  ask: (state: ExploredState, atOnce: boolean) => void,
): Page {
  const history = new History(stateOf(location.hash) ?? offer.state);
  let path: PathOfState | null = null; // the newest of the present scenario
  let pathOf = ""; // the state that has it
  const current = () => (fragment(history.now) === pathOf ? path : null);
  let moved = false; // a slider is held
  const drawing = diagram();
  const change = (next: (state: ExploredState) => ExploredState, moving: boolean) => {
    const before = history.now;
    const state = next(before);
    const ends = moved && !moving; // let go: what was held is asked for in any case
    if (JSON.stringify(state) !== JSON.stringify(before)) history.push(state, moved);
    else if (!ends) return;
    moved = moving;
    show();
    ask(history.now, !moving);
  };
  const panel = pathPanel(offer.scenarios, change);
  const senders = [0, 1].map((place) =>
    senderPanel(place, offer, (changes) => change((state) => withSender(state, place, changes), false)),
  );
  const to = (state: ExploredState) => {
    moved = false;
    show();
    ask(state, true);
  };
  const bar = toolbar({
    undo: () => to(history.undo()),
    redo: () => to(history.redo()),
    pin: () => (results.pin(), bar.show(history, current(), results.isPinned)),
    seeds: (seeds) => change((state) => ({ ...state, seeds }), false),
    second: () => change(withSecond, false),
    save: () => {
      const saved = current();
      if (saved) saveFile(fileName(saved.label), "application/toml", saved.file);
    },
  });
  const show = () => {
    const state = history.now;
    window.history.replaceState(null, "", fragment(state));
    if (stateOf(pathOf)?.scenario !== state.scenario) path = null;
    panel.show(state, path);
    senders.forEach((one, i) => {
      const mine = state.senders[i];
      one.element.hidden = mine === undefined;
      if (mine) one.show(mine);
    });
    drawing.show(state, path, current() !== null);
    bar.show(history, current(), results.isPinned);
  };
  const controls = h(
    "details",
    { class: "controls-drawer", open: !matchMedia("(max-width: 700px)").matches },
    h("summary", {}, "Path and senders"),
    panel.element,
    ...senders.map((one) => one.element),
  );
  root.replaceChildren(
    h("header", { class: "page explore-head" }, brand("#"), h("h1", {}, "Explore"), bar.element),
    banner,
    h("main", { class: "explore" }, controls, h("div", { class: "shown" }, drawing.element, results.element)),
    h("footer", {}, `Made by bentpipe ${offer.version}, in virtual time on this machine.`),
  );
  show();
  return {
    path: (found, of) => {
      [path, pathOf] = [found, fragment(of)];
      show();
    },
    play: () => ask(history.now, true),
    follow: () => {
      const state = stateOf(location.hash);
      if (state && fragment(state) !== fragment(history.now)) change(() => state, false);
    },
  };
}

/** The state with one sender more, or without the second. */
function withSecond(state: ExploredState): ExploredState {
  const [first, second] = state.senders;
  return { ...state, senders: second ? [first!] : [first!, first!] };
}

function fileName(label: string): string {
  return `${label.replace(/[^\w.=-]+/g, "-").slice(0, 60)}.toml`;
}
