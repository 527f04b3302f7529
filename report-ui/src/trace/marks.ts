// Thousands of small marks as one shape, which draws in one go what would be slow as an element each.

import { graphic } from "echarts/core";

export type Form = "dot" | "diamond" | "cross" | "tick";

interface Marks {
  /** Pixels across and down in turn. */
  points: Float64Array;
  size: number;
  form: Form;
}

const NAME = "marks";

/** The forms that are lines. */
const STROKES = new Set<Form>(["cross", "tick"]);

const Shape = graphic.extendShape({
  type: NAME,
  shape: { points: new Float64Array(0), size: 0, form: "dot" },
  buildPath(path, shape) {
    const { points, size, form } = shape as Marks;
    const half = size / 2;
    for (let i = 0; i < points.length; i += 2) {
      const [x, y] = [points[i]!, points[i + 1]!];
      if (form === "dot") path.rect(x - half, y - half, size, size);
      else if (form === "diamond") {
        path.moveTo(x, y - half);
        path.lineTo(x + half, y);
        path.lineTo(x, y + half);
        path.lineTo(x - half, y);
        path.closePath();
      } else if (form === "tick") {
        path.moveTo(x, y - half);
        path.lineTo(x, y + half);
      } else {
        path.moveTo(x - half, y - half);
        path.lineTo(x + half, y + half);
        path.moveTo(x - half, y + half);
        path.lineTo(x + half, y - half);
      }
    }
  },
});
graphic.registerShape(NAME, Shape as Parameters<typeof graphic.registerShape>[1]);

/** The part of a custom series that draws marks at times and values in turn. */
export function marks(
  data: Float64Array,
  { form, size, color }: { form: Form; size: number; color: string },
): object {
  return {
    type: "custom",
    clip: true,
    data: [[data[0], data[1]]],
    renderItem: (_: unknown, api: { coord: (value: number[]) => number[] }) => ({
      type: NAME,
      silent: true,
      shape: { points: pixels(data, api), size, form },
      style: STROKES.has(form) ? { stroke: color, fill: null, lineWidth: 1.75 } : { fill: color },
    }),
  };
}

const BAND = "band";

const Band = graphic.extendShape({
  type: BAND,
  shape: { points: new Float64Array(0) },
  buildPath(path, shape) {
    const { points } = shape as { points: Float64Array };
    for (let i = 0; i < points.length; i += 2) {
      if (i === 0) path.moveTo(points[0]!, points[1]!);
      else path.lineTo(points[i]!, points[i + 1]!);
    }
    path.closePath();
  },
});
graphic.registerShape(BAND, Band as Parameters<typeof graphic.registerShape>[1]);

/** The part of a custom series that fills what lies between two lines, as times and values in turn. */
export function band(low: Float64Array, high: Float64Array, color: string): object {
  const back = new Float64Array(high.length);
  for (let i = 0; i < high.length; i += 2) {
    back[high.length - 2 - i] = high[i]!;
    back[high.length - 1 - i] = high[i + 1]!;
  }
  const outline = new Float64Array([...low, ...back]);
  return {
    type: "custom",
    clip: true,
    data: [[outline[0], outline[1]]],
    renderItem: (_: unknown, api: { coord: (value: number[]) => number[] }) => ({
      type: BAND,
      silent: true,
      shape: { points: pixels(outline, api) },
      style: { fill: color, opacity: 0.22 },
    }),
  };
}

function pixels(data: Float64Array, api: { coord: (value: number[]) => number[] }): Float64Array {
  const points = new Float64Array(data.length);
  for (let i = 0; i < data.length; i += 2) {
    const at = api.coord([data[i]!, data[i + 1]!]);
    points[i] = at[0]!;
    points[i + 1] = at[1]!;
  }
  return points;
}
