// The state of the page: what its address holds, what can be undone, and the parts of a variant's name.

import type { ExploredSender, ExploredState } from "../schema/explore";

const OF_SENDER = ["client", "server", "treatment", "workload", "protocol"] as const;
const NAMES = ["a", "b"];

/** The fragment of the address that restores a state. */
export function fragment(state: ExploredState): string {
  const given = new URLSearchParams();
  given.append("scenario", state.scenario);
  for (const setting of state.settings) given.append("set", setting);
  state.senders.forEach((sender, i) => {
    for (const key of OF_SENDER) if (sender[key] !== "") given.append(`${NAMES[i]}.${key}`, sender[key]);
  });
  given.append("seeds", String(state.seeds));
  given.append("seed", String(state.seed));
  return `#${given}`;
}

/** The state that a fragment holds; null if it holds none. */
export function stateOf(fragment: string): ExploredState | null {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const [scenario, seeds, seed] = [
    given.get("scenario"),
    number(given.get("seeds")),
    number(given.get("seed")),
  ];
  const senders = NAMES.flatMap((name) => sender(given, name) ?? []);
  if (scenario === null || seeds === null || seed === null || senders.length === 0) return null;
  return { scenario, settings: given.getAll("set"), senders, seeds, seed };
}

function sender(given: URLSearchParams, name: string): ExploredSender | null {
  const [client, server, treatment, workload] = OF_SENDER.map((key) => given.get(`${name}.${key}`));
  if (!client || !server || !treatment || !workload) return null;
  return { client, server, treatment, workload, protocol: given.get(`${name}.protocol`) ?? "" };
}

function number(text: string | null): number | null {
  return text !== null && /^\d+$/.test(text) ? Number(text) : null;
}

/** The value of a setting; null where the scenario has it as it is. */
export function setting(state: ExploredState, key: string): string | null {
  const found = state.settings.findLast((one) => keyOf(one) === key); // of several the last one holds
  return found === undefined ? null : found.slice(found.indexOf("=") + 1).trim();
}

/** The state with a setting changed; null leaves it to the scenario. */
export function withSetting(state: ExploredState, key: string, value: string | null): ExploredState {
  const last = state.settings.findLastIndex((one) => keyOf(one) === key);
  const changed = value === null ? [] : [`${key}=${value}`];
  const settings = state.settings.flatMap((one, i) => {
    if (i === last) return changed;
    return keyOf(one) === key ? [] : [one];
  });
  return { ...state, settings: last < 0 ? [...settings, ...changed] : settings };
}

/** The state with these further settings: those of other keys go, except what sliders (`ofKnobs`) have set. */
export function withFurther(state: ExploredState, lines: string[], ofKnobs: string[]): ExploredState {
  const typed = lines.map(keyOf);
  const kept = state.settings.map(keyOf).map((key) => ofKnobs.includes(key) && !typed.includes(key));
  return { ...state, settings: [...state.settings.filter((_, i) => kept[i]), ...lines] };
}

export function keyOf(setting: string): string {
  return setting.split("=", 1)[0]!.trim();
}

/** The state with a sender changed. */
export function withSender(
  state: ExploredState,
  place: number,
  changes: Partial<ExploredSender>,
): ExploredState {
  const senders = state.senders.map((one, i) => (i === place ? { ...one, ...changes } : one));
  return { ...state, senders };
}

/** A variant such as `noq:cc=cubic:iw=100`, in its parts. */
export interface Variant {
  stack: string;
  options: [name: string, value: string][];
}

export function variant(label: string): Variant {
  const [stack = "", ...rest] = label.split(":");
  return { stack, options: rest.filter(Boolean).map((one) => cut(one)) };
}

function cut(option: string): [string, string] {
  const at = option.indexOf("=");
  return at < 0 ? [option, ""] : [option.slice(0, at), option.slice(at + 1)];
}

export function labelOf({ stack, options }: Variant): string {
  return [stack, ...options.map(([name, value]) => (value ? `${name}=${value}` : name))].join(":");
}

export function option({ options }: Variant, name: string): string {
  return options.find(([one]) => one === name)?.[1] ?? "";
}

/** A variant with an option changed; an empty value takes it out. */
export function withOption(of: Variant, name: string, value: string): Variant {
  const options = of.options.map(([one, was]): [string, string] => [one, one === name ? value : was]);
  if (!options.some(([one]) => one === name)) options.push([name, value]);
  return { ...of, options: options.filter(([one, kept]) => one !== name || kept !== "") };
}

/** States that were, and that were taken back. */
export class History<T> {
  private past: T[] = [];
  private future: T[] = [];
  constructor(
    private present: T,
    private readonly most = 200,
  ) {}
  get now(): T {
    return this.present;
  }
  get canUndo(): boolean {
    return this.past.length > 0;
  }
  get canRedo(): boolean {
    return this.future.length > 0;
  }
  /** A step; one that `continues` the last, as a slider that still moves, is taken back with it. */
  push(next: T, continues: boolean): void {
    if (!continues) this.past = [...this.past, this.present].slice(-this.most);
    this.present = next;
    this.future = [];
  }
  undo(): T {
    return this.move(this.past, this.future);
  }
  redo(): T {
    return this.move(this.future, this.past);
  }
  private move(from: T[], to: T[]): T {
    const next = from.pop();
    if (next !== undefined) {
      to.push(this.present);
      this.present = next;
    }
    return this.present;
  }
}
