// Both senders in one set of plots: of each sender the curves that can be compared, in its own colour; what belongs to
// the path once; bands of further seeds behind them, and what was pinned.

import type { Band } from "../schema/explore";
import type { Kind, Series, Trace } from "../trace/model";

export const SENDERS = ["A", "B"] as const;
export const COLOURS = ["series-1", "series-2"] as const;
const KINDS: Kind[] = ["offset", "rate", "in_flight", "rtt", "queue"];

/** The series that stands for a sender in each plot, by what its name begins with. */
const CURVE: Partial<Record<Kind, RegExp>> = {
  offset: /^received/,
  rate: /, raw$/,
  in_flight: /^bytes in flight/,
  rtt: /^samples/,
  queue: /^waiting/,
};

/** What the senders have come to; null where nothing is known yet. */
export interface Played {
  /** They are of a state before the present one. */
  stale: boolean;
  trace: Trace | null;
  band: Band | null;
}

/** A curve that was pinned, of the sender with this number. */
export interface Pinned {
  sender: number;
  kind: Kind;
  series: Series;
  end_s: number;
}

/** One trace for both senders; null if neither has one. */
export function overlay(played: Played[], pinned: Pinned[]): Trace | null {
  const traces = played.map(({ trace }) => trace);
  const fresh = played.flatMap(({ trace, stale }) => (trace && !stale ? [trace] : []));
  const ofPaths = fresh.length > 0 ? fresh : traces.filter((one) => one !== null);
  const first = ofPaths[0];
  if (!first) return null;
  const links = first.plots.filter(({ kind }) => !KINDS.includes(kind));
  const plots = KINDS.map((kind) => ({
    kind,
    series: [
      ...played.flatMap(({ band }, i) => ranges(band, kind, i)),
      ...pinned.filter((one) => one.kind === kind).map(({ series }) => series),
      ...once(ofPaths.flatMap((trace) => ofPath(trace, kind))),
      ...traces.flatMap((trace, i) => (trace ? ofSender(trace, kind, i, played[i]!.stale) : [])),
    ],
  })).filter(({ series }) => series.length > 0);
  const ends = [...traces.map((trace) => trace?.end_s ?? 0), ...pinned.map(({ end_s }) => end_s)];
  return {
    ...first,
    trial: "explore",
    notes: [],
    events: [],
    findings: [],
    end_s: Math.max(...ends),
    plots: [...plots, ...links],
  };
}

function series(trace: Trace, kind: Kind): Series[] {
  return trace.plots.find((one) => one.kind === kind)?.series ?? [];
}

function curve(trace: Trace, kind: Kind): Series | undefined {
  return series(trace, kind).find(({ name }) => CURVE[kind]?.test(name));
}

function ofSender(trace: Trace, kind: Kind, sender: number, stale: boolean): Series[] {
  const own = curve(trace, kind);
  const losses = series(trace, kind).filter(({ mark }) => mark === "loss");
  const [name, colour] = [SENDERS[sender]!, COLOURS[sender]!];
  if (stale) {
    const before = own && (own.mark === "steps" ? stepped(own) : own);
    return before ? [{ ...before, name: `${name}, before`, colour, mark: "pale" }] : [];
  }
  return [
    ...(own ? [{ ...own, name, colour }] : []),
    ...losses.map((one) => ({ ...one, name: `${name}, ${one.name}`, colour })),
  ];
}

/** What does not depend on the sender: rates, sizes of queues, and what an ideal sender would do. */
function ofPath(trace: Trace, kind: Kind): Series[] {
  return series(trace, kind)
    .filter(({ mark }) => mark === "level" || mark === "guide")
    .map((one) => ({ ...one, colour: "series-8" })); // colours are the senders'
}

/** Of series that say the same, one. */
function once(all: Series[]): Series[] {
  const known = new Map<string, Series>();
  for (const one of all) {
    const key =
      one.mark === "level" ? `${one.name} ${one.values[0]}` : `${one.name} ${[...one.times, ...one.values]}`;
    const before = known.get(key);
    // Levels reach as far as the longer of both.
    if (!before || (one.times.at(-1) ?? 0) > (before.times.at(-1) ?? 0)) known.set(key, one);
  }
  return [...known.values()];
}

function ranges(band: Band | null, kind: Kind, sender: number): Series[] {
  const found = band?.ranges.find((one) => one.kind === kind);
  if (!found || !band) return [];
  return [
    {
      name: `${SENDERS[sender]}, ${band.trials} seeds`,
      mark: "band",
      colour: COLOURS[sender]!,
      times: Float64Array.from(found.times),
      values: Float64Array.from(found.low),
      tops: Float64Array.from(found.high),
    },
  ];
}

/** The curves of both senders, to stand beside later ones. */
export function pin(played: Played[]): Pinned[] {
  return played.flatMap(({ trace }, sender) =>
    KINDS.flatMap((kind) => {
      const own = trace && curve(trace, kind);
      if (!trace || !own) return [];
      const kept: Series = {
        ...own,
        name: `${SENDERS[sender]}, pinned`,
        colour: COLOURS[sender]!,
        mark: "pinned",
      };
      return { sender, kind, series: own.mark === "steps" ? stepped(kept) : kept, end_s: trace.end_s };
    }),
  );
}

/** A line that looks like the steps of another. */
function stepped(one: Series): Series {
  const count = Math.max(0, one.times.length * 2 - 1);
  const [times, values] = [new Float64Array(count), new Float64Array(count)];
  for (let i = 0; i < count; i++) {
    times[i] = one.times[(i + 1) >> 1]!;
    values[i] = one.values[i >> 1]!;
  }
  return { ...one, times, values };
}
