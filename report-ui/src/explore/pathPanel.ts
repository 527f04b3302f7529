// The controls of the path: the scenario to begin with, its sliders, the weather, and further settings.

import { h } from "../dom";
import type { Json } from "../model";
import type { Choice, ExploredState, PathOfState } from "../schema/explore";
import { id, knob, list } from "./controls";
import {
  clearRate,
  DISCIPLINES,
  megabits,
  milliseconds,
  percents,
  queue,
  queueText,
  QUEUE_UNITS,
  rain,
  rounded,
  withRain,
  withRate,
  type Queue,
  type QueueUnit,
  type Rain,
} from "./knobs";
import { keyOf, setting, withFurther, withSetting } from "./state";

type Change = (next: (state: ExploredState) => ExploredState, moving: boolean) => void;
type Way = "forward" | "return";

export interface Panel {
  element: HTMLElement;
  show: (state: ExploredState, path: PathOfState | null) => void;
}

/** Settings that sliders show. */
const OF_KNOBS = ["rate", "rate.attenuation", "delay", "queue", "loss"].flatMap((key) => [
  `forward.${key}`,
  `return.${key}`,
]);

const RATES = { low: 0.1, high: 1000, log: true };
const DELAYS = { low: 0, high: 800, log: false };
const LOSSES = { low: 0.001, high: 20, log: true, zero: true };

/** What the satellite segment has in one direction, in full. */
function link(path: PathOfState | null, way: Way): { [key: string]: Json } {
  const satellite = path?.scenario["satellite"] as { [way: string]: { [key: string]: Json } } | undefined;
  return satellite?.[way] ?? {};
}

export function pathPanel(scenarios: Choice[], change: Change): Panel {
  let shown: { state: ExploredState; path: PathOfState | null } | null = null;
  const scenario = list("Scenario", scenarios, (name) =>
    change((state) => ({ ...state, scenario: name, settings: [] }), false),
  );
  const parts = [
    ratesPart(change),
    delayPart(change),
    queuePart("forward", change),
    queuePart("return", change),
    lossPart(change),
  ];
  const weather = weatherPart((wanted, moving) =>
    change((state) => withRain(state, wanted, link(shown?.path ?? null, "forward")["rate"]), moving),
  );
  const further = furtherPart(change);
  // What a slider changes is part of a value of the scenario: without that it would change another one's.
  const knobs = h("fieldset", { class: "knobs" }, ...parts.map((part) => part.element), weather.element);
  const back = h("button", { type: "button" }, "As the scenario has it");
  back.addEventListener("click", () => change((state) => ({ ...state, settings: [] }), false));
  const element = h(
    "fieldset",
    { class: "panel" },
    h("legend", {}, "Path"),
    scenario.element,
    knobs,
    further.element,
    h("div", { class: "actions" }, back),
  );
  return {
    element,
    show: (state, path) => {
      shown = { state, path };
      scenario.show(state.scenario);
      knobs.disabled = path === null;
      for (const part of [...parts, weather, further]) part.show(state, path);
      back.disabled = state.settings.length === 0;
    },
  };
}

function ratesPart(change: Change): Panel {
  const forward = knob("Rate forward", "Mbit/s", RATES, (value, moving) =>
    change((state) => withRate(state, value), moving),
  );
  const back = knob("Rate return", "Mbit/s", RATES, (value, moving) =>
    change((state) => withSetting(state, "return.rate", `${value} Mbit/s`), moving),
  );
  return {
    element: h("div", {}, forward.element, back.element),
    show: (state, path) => {
      forward.show(clearRate(state) ?? megabits(link(path, "forward")["rate"]));
      back.show(megabits(setting(state, "return.rate") ?? link(path, "return")["rate"]));
    },
  };
}

function delayPart(change: Change): Panel {
  const both = knob("Delay, each way", "ms", DELAYS, (value, moving) =>
    change((state) => {
      const forward = withSetting(state, "forward.delay", `${value} ms`);
      return withSetting(forward, "return.delay", `${value} ms`);
    }, moving),
  );
  return {
    element: both.element,
    show: (state, path) =>
      both.show(milliseconds(setting(state, "forward.delay") ?? link(path, "forward")["delay"])),
  };
}

function queuePart(way: Way, change: Change): Panel {
  let now: Queue = { size: 25, unit: "packets", discipline: "drop-tail", more: "" };
  const key = `${way}.queue`;
  const set = (changes: Partial<Queue>, moving = false) => {
    now = { ...now, ...changes };
    change((state) => withSetting(state, key, queueText(now)), moving);
  };
  const units = h(
    "select",
    { "aria-label": `Unit of the queue ${way}` },
    ...Object.keys(QUEUE_UNITS).map((unit) => h("option", {}, unit)),
  );
  units.addEventListener("change", () =>
    set({ unit: units.value as QueueUnit, ...limits(now.size, units.value as QueueUnit) }),
  );
  const size = knob(
    `Queue ${way}`,
    units,
    () => QUEUE_UNITS[now.unit],
    (value, moving) => set({ size: value }, moving),
  );
  const discipline = list(
    `AQM ${way}`,
    DISCIPLINES.map((name) => ({ name })),
    (name) => set({ discipline: name, more: "" }),
  );
  return {
    element: h("div", {}, size.element, discipline.element),
    show: (state, path) => {
      const found = queue(setting(state, key) ?? link(path, way)["queue"]);
      if (found) now = found;
      units.value = now.unit;
      size.show(found && found.size);
      discipline.show(now.discipline);
    },
  };
}

/** A size that a unit's slider has. */
function limits(size: number, unit: QueueUnit): { size: number } {
  const { low, high } = QUEUE_UNITS[unit];
  return { size: rounded(Math.min(high, Math.max(low, size))) };
}

function lossPart(change: Change): Panel {
  const made = (["forward", "return"] as const).map((way) => ({
    way,
    knob: knob(`Loss ${way}`, "%", LOSSES, (value, moving) =>
      change((state) => withSetting(state, `${way}.loss`, value === 0 ? "none" : `${value} %`), moving),
    ),
  }));
  return {
    element: h("div", {}, ...made.map((one) => one.knob.element)),
    show: (state, path) => {
      for (const { way, knob } of made)
        knob.show(percents(setting(state, `${way}.loss`) ?? link(path, way)["loss"]));
    },
  };
}

function weatherPart(changed: (wanted: Rain, moving: boolean) => void): Panel {
  let now: Rain = { dB: 0, at: 1, lasts: 5 };
  const set = (changes: Partial<Rain>, moving = false) => {
    now = { ...now, ...changes };
    changed(now, moving);
  };
  const strength = knob("Rain forward", "dB", { low: 0, high: 20, log: false }, (dB, moving) =>
    set({ dB }, moving),
  );
  const begins = knob("Rain begins at", "s", { low: 0, high: 30, log: false }, (at, moving) =>
    set({ at }, moving),
  );
  const lasts = knob("Rain lasts", "s", { low: 0.1, high: 60, log: true }, (lasts, moving) =>
    set({ lasts }, moving),
  );
  const note = h(
    "p",
    { class: "note", hidden: true },
    "This scenario’s rate changes by itself: set a rate to let it rain.",
  );
  const times = h("div", {}, begins.element, lasts.element);
  return {
    element: h("div", {}, strength.element, times, note),
    show: (state, path) => {
      now = rain(state);
      const resolved = link(path, "forward")["rate"];
      const carrier = typeof resolved === "object" && resolved !== null && "standard" in resolved;
      const possible = carrier || clearRate(state) !== null || megabits(resolved) !== null || path === null;
      note.hidden = possible;
      strength.element.hidden = !possible;
      times.hidden = now.dB === 0;
      strength.show(now.dB);
      begins.show(now.at);
      lasts.show(now.lasts);
    },
  };
}

/** Settings that no slider has, a line each. */
function furtherPart(change: Change): Panel {
  const area = h("textarea", {
    id: id(),
    rows: 1,
    spellcheck: "false",
    placeholder: "forward.bit_errors=1e-7",
  });
  area.addEventListener("change", () => {
    const lines = area.value
      .split("\n")
      .map((line) => line.trim())
      .filter(Boolean);
    change((state) => withFurther(state, lines, OF_KNOBS), false);
  });
  const label = h("label", { for: area.id }, "Further settings, ", h("code", {}, "KEY=VALUE"), " each line");
  return {
    element: h("div", { class: "field wide" }, label, area),
    show: (state) => {
      const lines = state.settings.filter((one) => !OF_KNOBS.includes(keyOf(one)));
      area.rows = Math.max(1, lines.length);
      if (document.activeElement !== area) area.value = lines.join("\n");
    },
  };
}
