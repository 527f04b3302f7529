import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateSync } from "node:zlib";
import { integers, values } from "../src/trace/columns";
import type { Theme } from "../src/chart";
import { option, type Shown } from "../src/trace/option";
import { name, reading } from "../src/trace/plot";
import type { Series } from "../src/trace/model";
import { dots, extent, firstFrom, line, roundAxis, strokes, type View } from "../src/trace/thin";
import { fragment, moved, place, within, zoomed } from "../src/trace/window";

const floats = (...numbers: number[]) => Float64Array.from(numbers);

/** Numbers as `columns.py` packs them. */
const packed = (numbers: number[]) =>
  deflateSync(new Uint8Array(Int32Array.from(numbers).buffer)).toString("base64");

test("columns are sums of what is stored, times their unit", async () => {
  const all = await integers(packed([7, 0, 500_000, 500_000, -250_000]));
  assert.deepEqual([...all], [7, 0, 500_000, 500_000, -250_000]);
  assert.deepEqual(values(all, { at: 1, count: 4, unit: 1e-6 }), floats(0, 0.5, 1, 0.75));
  assert.deepEqual(values(all, { at: 0, count: 1, unit: 1000 }), floats(7000));
  assert.deepEqual(values(all, { at: 5, count: 0, unit: 1 }), floats());
});

test("a column that ends behind the data is an error, not zeros", async () => {
  const all = await integers(packed([1, 2]));
  assert.throws(() => values(all, { at: 1, count: 2, unit: 1 }), /ends at 3 of 2/);
});

test("a window and its fragment say the same", () => {
  const there = { trial: "sat_quinn:cc=bbr_noq_1-0a1b", plot: "in_flight", span: { from: 1.25, to: 2.5 } };
  assert.equal(fragment(there), "#trial=sat_quinn%3Acc%3Dbbr_noq_1-0a1b&plot=in_flight&from=1.25&to=2.5");
  assert.deepEqual(place(fragment(there)), there);
  assert.deepEqual(place(fragment({ ...there, plot: null, span: null })), {
    ...there,
    plot: null,
    span: null,
  });
});

test("a fragment has the digits that its window is worth", () => {
  const span = { from: 1.000_012_34, to: 1.000_212_34 };
  assert.equal(fragment({ trial: "a", plot: null, span }), "#trial=a&from=1.000012&to=1.000212");
  assert.equal(
    fragment({ trial: "a", plot: null, span: { from: 0.123_456, to: 160.5 } }),
    "#trial=a&from=0.1&to=160.5",
  );
});

test("a fragment that names no place is none", () => {
  assert.equal(place(""), null);
  assert.equal(place("#plot=offset"), null);
  for (const odd of ["from=1", "from=2&to=1", "from=x&to=3", "from=&to=3"]) {
    assert.deepEqual(place(`#trial=a&${odd}`), { trial: "a", plot: null, span: null }, odd);
  }
});

test("windows stay within the transfer", () => {
  const whole = { from: 0, to: 10 };
  assert.deepEqual(within({ from: -1, to: 1 }, whole), { from: 0, to: 2 });
  assert.deepEqual(within({ from: 9, to: 12 }, whole), { from: 7, to: 10 });
  assert.deepEqual(within({ from: -5, to: 50 }, whole), whole);
  const shortest = within({ from: 5, to: 5 }, whole);
  assert.ok(shortest.to > shortest.from && shortest.to - shortest.from < 1e-4);
});

test("zooming keeps the time under the pointer, moving keeps the length", () => {
  assert.deepEqual(zoomed({ from: 2, to: 6 }, 0.5, 3), { from: 2.5, to: 4.5 });
  assert.deepEqual(moved({ from: 2, to: 6 }, 0.25), { from: 3, to: 7 });
});

const VIEW: View = { from: 0, to: 10, low: 0, high: 100, width: 100, height: 50 };

test("a dot that hides behind another is left out, those outside too", () => {
  const times = floats(1, 1.001, 1.001, 5, 11);
  const kept = dots(times, floats(10, 10.1, 90, 200, 10), VIEW);
  assert.deepEqual([...kept], [1, 10, 1.001, 90]);
  const apart = dots(times, floats(10, 10.1, 90, 200, 10), { ...VIEW, from: 0.9995, to: 1.0015 });
  assert.equal(apart.length, 6);
});

test("100,000 dots become no more than the pixels", () => {
  const times = Float64Array.from({ length: 100_000 }, (_, i) => i / 10_000);
  const kept = dots(
    times,
    times.map((time) => time * 10),
    VIEW,
  );
  assert.ok(kept.length / 2 <= 2 * (VIEW.width + VIEW.height), String(kept.length));
  assert.ok(kept.length / 2 >= VIEW.width);
});

test("a thinned line keeps first, least, greatest and last of each pixel, and its neighbours outside", () => {
  const times = floats(-3, -1, 0.01, 0.02, 0.03, 0.04, 0.05, 9, 12, 20);
  const kept = line(times, floats(1, 2, 5, 4, 9, 3, 6, 7, 8, 9), VIEW);
  assert.deepEqual([...kept], [-1, 2, 0.01, 5, 0.03, 9, 0.04, 3, 0.05, 6, 9, 7, 12, 8]);
});

test("ranges in a pixel are joined where they meet and stay apart where they do not", () => {
  const ranges = {
    times: floats(1, 1.01, 1.02, 5),
    low: floats(0, 10, 60, 98),
    high: floats(20, 30, 80, 300),
  };
  const kept = [...strokes(ranges, VIEW)];
  const found = kept.filter((_, i) => i % 6 === 1 || i % 6 === 3);
  assert.deepEqual(found, [0, 32, 60, 82, 98, 102]);
  assert.ok(Number.isNaN(kept[4]) && Number.isNaN(kept[5]));
});

test("the extent of a window counts what is in it alone", () => {
  const [times, numbers] = [floats(0, 1, 2, 3), floats(5, 9, 7, 1)];
  assert.deepEqual(extent(times, numbers, { from: 1, to: 2 }), [7, 9]);
  assert.equal(extent(times, numbers, { from: 3.5, to: 4 }), null);
  assert.deepEqual(
    [-1, 0, 0.5, 3, 4].map((limit) => firstFrom(times, limit)),
    [0, 0, 1, 3, 4],
  );
});

test("axes have round ends that hold their values", () => {
  assert.deepEqual(roundAxis(0, 97, 5), { min: 0, max: 100, interval: 20 });
  assert.deepEqual(roundAxis(1234, 1267, 4), { min: 1230, max: 1270, interval: 10 });
  const flat = roundAxis(500, 500, 4);
  assert.ok(flat.min <= 500 && flat.max > 500 && flat.interval > 0);
  const nothing = roundAxis(0, 0, 4);
  assert.ok(nothing.max > nothing.min && nothing.interval > 0);
});

test("at a time a line has its last value, dots the nearest within reach", () => {
  const one = (mark: Series["mark"]) =>
    ({ mark, times: floats(1, 2, 4), values: floats(10, 20, 40), tops: null }) as Series;
  assert.deepEqual(
    [0.5, 1.5, 2.9, 5].map((at) => reading(one("steps"), at, 0.2)),
    [null, 10, 20, 40],
  );
  assert.deepEqual(
    [0.9, 1.5, 3.9, 4.3].map((at) => reading(one("dots"), at, 0.2)),
    [10, null, 40, null],
  );
});

test("a window with nothing in it keeps the axis of the whole trace", () => {
  const sent = {
    name: "sent",
    mark: "dots",
    colour: "accent",
    times: floats(5, 6),
    values: floats(1e6, 2e6),
  };
  const drawn = (from: number, to: number) => {
    const series = [{ ...sent, tops: null }];
    const shown = { kind: "offset", series, events: [], interruptions: [], marked: null, width: 500 };
    const made = option({ ...shown, span: { from, to } } as Shown, { of: () => "" } as unknown as Theme);
    const { min, max } = made.yAxis as { min: number; max: number };
    return [min, max];
  };
  assert.deepEqual(drawn(0, 1), drawn(0, 10));
  assert.deepEqual(drawn(0, 1), [1e6, 2.2e6]);
});

const SATELLITES = {
  name: "elevation",
  mark: "line",
  colour: "accent",
  times: floats(0, 45, 45, 60),
  values: floats(60, 55, 70, 65),
  tops: null,
  names: [
    [0, "64-15"],
    [45, "53-1"],
  ],
} as Series;

/** What a plot of the satellites draws in a window of 500 pixels. */
function satellites(from: number, to: number): { series: object[] } {
  const interruptions = [{ from_s: 45, to_s: 45.08, what: "handover", satellite: "53-1" }];
  const shown: Shown = {
    kind: "elevation",
    series: [SATELLITES],
    events: [],
    interruptions,
    span: { from, to },
    marked: null,
    width: 580,
  };
  return option(shown, { of: () => "", muted: "grey" } as unknown as Theme) as { series: object[] };
}

test("a name goes with the values from its time on", () => {
  assert.deepEqual(
    [-1, 0, 44.9, 45, 99].map((at) => name(SATELLITES, at)),
    ["", "64-15", "64-15", "53-1", "53-1"],
  );
  assert.equal(name({ ...SATELLITES, names: null }, 1), "");
});

test("names stand in the window where there is room for them", () => {
  const told = (from: number, to: number) => {
    const { data } = satellites(from, to).series.at(-1) as {
      data: { value: number[]; label: { formatter: string } }[];
    };
    return data.map(({ value, label }) => [label.formatter, ...value]);
  };
  assert.deepEqual(told(0, 60), [
    ["64-15", 0, 60],
    ["53-1", 45, 70],
  ]);
  assert.deepEqual(told(0, 46), [["64-15", 0, 60]]);
  assert.deepEqual(told(50, 60), [["53-1", 50, 70]]);
});

test("an interruption is a band, however short, in the window alone", () => {
  const bands = (from: number, to: number) => {
    const { markArea } = satellites(from, to).series[0] as { markArea: { data: { xAxis: number }[][] } };
    return markArea.data.map((band) => band.map(({ xAxis }) => xAxis));
  };
  assert.deepEqual(bands(0, 40), []);
  assert.deepEqual(bands(45.01, 46), [[45.01, 45.08]]);
  // 2 of 500 pixels
  assert.deepEqual(bands(0, 100), [[45, 45.4]]);
});
