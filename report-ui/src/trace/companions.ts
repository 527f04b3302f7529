// The other iterations of the cell, pale behind the trace of one.
//
// Their records count UDP payload at the client. Offsets of the trace may be those at the server, which the same
// bytes passed half a round trip earlier: `others_earlier_s` says by how much.

import type { CellDetail, Iteration } from "../model";
import { rates, rateWindow, received, spans, type TimeSeries } from "../received";
import type { Kind, Series, Trace } from "./model";

export function companions(
  kind: Kind,
  cell: CellDetail,
  own: Iteration,
  { others_earlier_s: earlier }: Trace,
): Series[] {
  if (earlier === null) return [];
  const others = cell.iterations.filter(
    (one) => one.iteration !== own.iteration && one.received_bytes.length > 0,
  );
  if (kind === "offset") return others.map((one) => pale(sooner(received(one), earlier)));
  if (kind !== "rate") return [];
  const window = rateWindow(spans(cell.iterations).ok);
  return others.map((one) => pale(rates(one, window)));
}

function sooner(course: TimeSeries, by_s: number): TimeSeries {
  return course.map(([time, value]) => [time - by_s, value]);
}

function pale(course: TimeSeries): Series {
  return {
    name: "other iterations, UDP payload",
    mark: "pale",
    colour: "accent",
    times: Float64Array.from(course, ([time]) => time),
    values: Float64Array.from(course, ([, value]) => value),
    tops: null,
  };
}
