// What a plot shows beside the trace: the other iterations, the ideal sender and the rates of the path.

import type { CellDetail, Iteration } from "../model";
import { ideal, rates, rateWindow, received, spans, type Course, type Path } from "../received";
import type { Kind, Mark, Series } from "./model";

/** The other iterations are pale and in the background, what the path allows is in front. */
export function companions(
  kind: Kind,
  cell: CellDetail,
  own: Iteration,
  path: Path,
  end_s: number,
): { behind: Series[]; front: Series[] } {
  const others = cell.iterations.filter(
    (one) => one.iteration !== own.iteration && one.received_bytes.length > 0,
  );
  if (kind === "offset") {
    // Of the file alone: offsets count no headers.
    const perfect = ideal({ ...cell, limit_bytes: cell.size_bytes }, path);
    return {
      behind: pale("other iterations, UDP payload", others.map(received)),
      front: perfect ? [series("ideal sender", "guide", "signal", perfect)] : [],
    };
  }
  if (kind !== "rate") return { behind: [], front: [] };
  const window = rateWindow(spans(cell.iterations).ok);
  const level = (name: string, colour: string, bps: number | null) =>
    bps === null
      ? []
      : [
          series(name, "guide", colour, [
            [0, bps],
            [end_s, bps],
          ]),
        ];
  return {
    behind: pale(
      "other iterations, UDP payload",
      others.map((one) => rates(one, window)),
    ),
    front: level("bottleneck, forward", "signal", path.forward_rate_bps),
  };
}

function pale(name: string, courses: Course[]): Series[] {
  return courses.map((course) => series(name, "pale", "accent", course));
}

function series(name: string, mark: Mark, colour: string, course: Course): Series {
  return {
    name,
    mark,
    colour,
    times: Float64Array.from(course, ([time]) => time),
    values: Float64Array.from(course, ([, value]) => value),
    tops: null,
  };
}
