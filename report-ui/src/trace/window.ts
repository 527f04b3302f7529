// The time window that all plots of a trial show, and its place in the address of the page.

/** A part of the time axis, in seconds. */
export interface Span {
  from: number;
  to: number;
}

/** The shortest window: a few packets at 1 Gbit/s. Below it axes would show rounding. */
const SHORTEST_S = 20e-6;

/** `span` within `whole`: moved if it fits, cut if it is too long, stretched if it is too short. */
export function within(span: Span, whole: Span): Span {
  const longest = whole.to - whole.from;
  const length = Math.min(longest, Math.max(SHORTEST_S, span.to - span.from));
  const middle = (span.from + span.to) / 2;
  const from = Math.min(Math.max(whole.from, middle - length / 2), whole.to - length);
  return { from, to: from + length };
}

/** `span` made `factor` times as long, with the time `about` staying where it is. */
export function zoomed({ from, to }: Span, factor: number, about: number): Span {
  return { from: about - (about - from) * factor, to: about + (to - about) * factor };
}

/** `span` moved by a share of its length. */
export function moved({ from, to }: Span, share: number): Span {
  const by = (to - from) * share;
  return { from: from + by, to: to + by };
}

/** A place in the plots: what a link can name. */
export interface Place {
  trial: string;
  plot: string | null;
  span: Span | null;
}

/** `#trial=…&plot=offset&from=1.2&to=2.5`, with as many digits as the window is worth. */
export function fragment({ trial, plot, span }: Place): string {
  const parts = [`trial=${encodeURIComponent(trial)}`];
  if (plot !== null) parts.push(`plot=${encodeURIComponent(plot)}`);
  if (span !== null) {
    const digits = Math.min(6, Math.max(0, 3 - Math.floor(Math.log10(span.to - span.from))));
    const show = (s: number) => String(Number(s.toFixed(digits)));
    parts.push(`from=${show(span.from)}`, `to=${show(span.to)}`);
  }
  return `#${parts.join("&")}`;
}

/** The place that a fragment names; null if it names no trial. A window that is none is left out. */
export function place(fragment: string): Place | null {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const trial = given.get("trial");
  if (!trial) return null;
  const [from, to] = [given.get("from"), given.get("to")].map((text) => (text ? Number(text) : NaN));
  const span = from !== undefined && to !== undefined && from < to ? { from, to } : null;
  return { trial, plot: given.get("plot"), span };
}
