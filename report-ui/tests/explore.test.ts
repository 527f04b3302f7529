import assert from "node:assert/strict";
import { test } from "node:test";
import { median } from "../src/collection/samples";
import {
  BITS_PER_SYMBOL,
  clearRate,
  megabits,
  milliseconds,
  percents,
  placeOf,
  queue,
  QUEUE_UNITS,
  queueText,
  rain,
  rounded,
  valueAt,
  withRain,
  withRate,
} from "../src/explore/knobs";
import { overlay, pin } from "../src/explore/overlay";
import {
  fragment,
  History,
  labelOf,
  option,
  setting,
  stateOf,
  variant,
  withFurther,
  withOption,
  withSetting,
} from "../src/explore/state";
import type { ExploredState } from "../src/schema/explore";
import type { Series, Trace } from "../src/trace/model";
import { csv } from "../src/trace/plot";

const SENDER = {
  client: "noq",
  server: "noq:cc=cubic:iw=100",
  treatment: "quic-pep=terminal:iw=100,gateway",
  workload: "page:kosek",
  protocol: "h3",
};
const STATE: ExploredState = {
  scenario: "sat",
  settings: ['forward.queue={aqm="codel", size="1 BDP"}', "forward.loss=1 %"],
  senders: [SENDER, { ...SENDER, protocol: "" }],
  seeds: 10,
  seed: 20260401,
};

test("a link restores its state, and nothing else is one", () => {
  assert.deepEqual(stateOf(fragment(STATE)), STATE);
  assert.deepEqual(stateOf(fragment({ ...STATE, senders: [SENDER] })), { ...STATE, senders: [SENDER] });
  for (const odd of ["", "#", "#scenario=sat", fragment(STATE).replace("seeds=10", "seeds=x")]) {
    assert.equal(stateOf(odd), null, odd);
  }
});

test("settings are changed in their place, and left to the scenario again", () => {
  assert.equal(setting(STATE, "forward.loss"), "1 %");
  const changed = withSetting(STATE, "forward.queue", "25 packets");
  assert.deepEqual(changed.settings, ["forward.queue=25 packets", "forward.loss=1 %"]);
  assert.deepEqual(withSetting(changed, "forward.queue", null).settings, ["forward.loss=1 %"]);
  assert.deepEqual(withSetting(STATE, "return.loss", "none").settings.at(-1), "return.loss=none");
});

test("of several settings of a key the last one holds, and a change leaves one", () => {
  const twice = { ...STATE, settings: ["a.x=1", "b=2", "a.x=3"] };
  assert.equal(setting(twice, "a.x"), "3");
  assert.deepEqual(withSetting(twice, "a.x", "4").settings, ["b=2", "a.x=4"]);
  assert.deepEqual(withSetting(twice, "a.x", null).settings, ["b=2"]);
  const slid = { ...STATE, settings: ["forward.loss=1 %", "old=1", "forward.queue=1 BDP"] };
  assert.deepEqual(
    withFurther(slid, ["new=2", "forward.loss=5 %"], ["forward.loss", "forward.queue"]).settings,
    ["forward.queue=1 BDP", "new=2", "forward.loss=5 %"],
  );
});

test("variants keep their options, in their order", () => {
  const parts = variant("noq:cc=cubic:iw=100");
  assert.equal(labelOf(parts), "noq:cc=cubic:iw=100");
  assert.equal(option(parts, "cc"), "cubic");
  assert.equal(labelOf(withOption(parts, "cc", "bbr3")), "noq:cc=bbr3:iw=100");
  assert.equal(labelOf(withOption(parts, "cc", "")), "noq:iw=100");
  assert.equal(labelOf(withOption(parts, "ss", "trains")), "noq:cc=cubic:iw=100:ss=trains");
});

test("a slider that is held is one step back", () => {
  const history = new History(0);
  history.push(1, false);
  history.push(2, true);
  history.push(3, true);
  history.push(9, false);
  assert.deepEqual([history.undo(), history.undo(), history.undo()], [3, 0, 0]);
  assert.deepEqual([history.redo(), history.redo(), history.redo()], [3, 9, 9]);
  history.undo();
  history.push(5, false);
  assert.equal(history.canRedo, false);
});

test("a slider's places and values are each other's inverse", () => {
  const scales = [
    ...Object.values(QUEUE_UNITS),
    { low: 0, high: 800, log: false },
    { low: 0.001, high: 20, log: true, zero: true },
  ];
  for (const scale of scales) {
    for (const place of [0.05, 0.3, 0.77, 1]) {
      assert.ok(Math.abs(placeOf(valueAt(place, scale), scale) - place) < 1e-9);
    }
  }
  assert.equal(valueAt(0, scales.at(-1)!), 0);
  assert.equal(placeOf(0, scales.at(-1)!), 0);
  assert.equal(rounded(123.456), 123);
  assert.equal(rounded(0.01234), 0.012);
});

test("texts of scenarios are read with their units; what varies has no number", () => {
  assert.equal(megabits("500 kbit/s"), 0.5);
  assert.equal(megabits({ steps: [] }), null);
  assert.equal(milliseconds("1.5 s"), 1500);
  assert.equal(percents("none"), 0);
  assert.equal(percents("0.1 %"), 0.1);
  assert.equal(percents({ model: "steps" }), null);
});

test("queues go from a scenario or a setting into sliders and back", () => {
  for (const text of [
    "25 packets",
    "0.5 BDP",
    '{aqm="codel", size="1 BDP"}',
    '{aqm="step", size="1 BDP", mark_above="5 ms"}',
  ]) {
    assert.equal(queueText(queue(text)!), text);
  }
  assert.deepEqual(queue({ size: "36 MB", drop_above: "18 MB" }), {
    size: 36_000,
    unit: "kB",
    discipline: "drop-tail",
    more: 'drop_above="18 MB"',
  });
  assert.equal(
    queueText(queue({ size: "36 MB", drop_above: "18 MB" })!),
    '{size="36000 kB", drop_above="18 MB"}',
  );
  assert.equal(queue("plenty"), null);
});

test("rain makes a carrier of the same rate in clear sky, and goes again", () => {
  const dry = { ...STATE, settings: [] };
  const wet = withRain(dry, { dB: 8, at: 2, lasts: 4 }, "20 Mbit/s");
  assert.deepEqual(rain(wet), { dB: 8, at: 2, lasts: 4 });
  assert.equal(clearRate(wet), 20);
  assert.match(wet.settings[0]!, /symbol_rate="5\.3215\d* MBd"/);
  assert.ok(Math.abs(20 / BITS_PER_SYMBOL - 5.3215) < 1e-3);
  assert.deepEqual(rain(withRate(wet, 50)), { dB: 8, at: 2, lasts: 4 });
  assert.equal(setting(withRain(wet, { dB: 0, at: 2, lasts: 4 }, undefined), "forward.rate"), "20 Mbit/s");
  const carrier = { standard: "dvb-s2" };
  const own = withRain(dry, { dB: 3, at: 1, lasts: 5 }, carrier);
  assert.deepEqual(rain(own), { dB: 3, at: 1, lasts: 5 });
  assert.deepEqual(withRain(own, { dB: 0, at: 1, lasts: 5 }, carrier).settings, []);
  assert.equal(withRain(dry, { dB: 3, at: 1, lasts: 5 }, { mean: "49 Mbit/s" }), dry);
});

const series = (name: string, mark: Series["mark"], ...values: number[]): Series => ({
  name,
  mark,
  colour: "accent",
  times: Float64Array.from(values, (_, i) => i),
  values: Float64Array.from(values),
  tops: null,
});
const trace = (end_s: number): Trace => ({
  trial: "t",
  notes: [],
  end_s,
  events: [],
  others_earlier_s: null,
  findings: [],
  unlike_record: { more: [], fewer: [] },
  interruptions: [],
  plots: [
    {
      kind: "offset",
      series: [
        series("received, distinct bytes", "steps", 0, end_s),
        series("lost", "loss", 1),
        series("ideal sender", "guide", 0, 9),
      ],
    },
    {
      kind: "rate",
      series: [series("forward, raw", "line", 1), series("bottleneck, forward", "level", 5, 5)],
    },
    { kind: "capacity", series: [series("capacity", "steps", 1)] },
  ],
});

test("both senders stand in one plot, what belongs to the path once", () => {
  const band = {
    trials: 3,
    completion_s: [],
    failed: 0,
    ranges: [{ kind: "rate", times: [0, 1], low: [1, 2], high: [3, 4] }],
  };
  const both = [
    { trace: trace(4), band, stale: false },
    { trace: trace(7), band: null, stale: false },
  ];
  const made = overlay(both, pin(both))!;
  assert.equal(made.end_s, 7);
  const names = Object.fromEntries(
    made.plots.map((plot) => [plot.kind, plot.series.map(({ name }) => name)]),
  );
  assert.deepEqual(names, {
    offset: ["A, pinned", "B, pinned", "ideal sender", "A", "A, lost", "B", "B, lost"],
    rate: ["A, 3 seeds", "A, pinned", "B, pinned", "bottleneck, forward", "A", "B"],
    capacity: ["capacity"],
  });
  assert.equal(overlay([{ trace: null, band: null, stale: false }], []), null);
  const [pinned] = pin(both);
  assert.deepEqual([...pinned!.series.times], [0, 1, 1]);
  assert.deepEqual([...pinned!.series.values], [0, 0, 4]);
});

test("a sender whose trial still runs is pale, and says nothing about the path", () => {
  const changed = trace(7);
  changed.plots[1]!.series[1]!.values.fill(3);
  const made = overlay(
    [
      { trace: trace(4), band: null, stale: true },
      { trace: changed, band: null, stale: false },
    ],
    [],
  )!;
  const marks = made.plots[0]!.series.map(({ name, mark }) => [name, mark]);
  assert.deepEqual(marks, [
    ["ideal sender", "guide"],
    ["A, before", "pale"],
    ["B", "steps"],
    ["B, lost", "loss"],
  ]);
  const levels = made.plots[1]!.series.filter(({ mark }) => mark === "level");
  assert.deepEqual(
    levels.map(({ values }) => values[0]),
    [3],
  );
});

test("the median of an even number of times lies between the middle two", () => {
  assert.equal(median([1]), 1);
  assert.equal(median([1, 2, 9]), 2);
  assert.equal(median([1, 2, 4, 9]), 3);
});

test("a plot as CSV has a line for each point, and its names quoted", () => {
  assert.equal(
    csv([series('a "b"', "line", 1, 2)]),
    'series,time_s,value,top\n"a ""b""",0,1,\n"a ""b""",1,2,\n',
  );
});
