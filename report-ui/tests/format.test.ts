import assert from "node:assert/strict";
import { test } from "node:test";
import { bytes, decimals, duration, goodput, percent, quantity, rate, seconds } from "../src/format";
import { pathFacts } from "../src/path";

/** With plain spaces, which are easier to read here. */
const plain = (text: string) => text.replaceAll("\u202f", " ");

test("numbers keep three figures", () => {
  assert.deepEqual([0, 9.99, 10, 99.9, 100].map(decimals), [2, 2, 1, 1, 0]);
  assert.equal(plain(goodput(8_904_321)), "8.90 Mbit/s");
  assert.equal(plain(duration(0.6061)), "606 ms");
  assert.equal(plain(duration(9)), "9.00 s");
});

test("parameters lose zeros that say nothing", () => {
  assert.equal(plain(rate(20e6)), "20 Mbit/s");
  assert.equal(plain(rate(1.89e6)), "1.89 Mbit/s");
  assert.equal(plain(rate(500e3)), "500 kbit/s");
  assert.equal(plain(seconds(120)), "120 s");
});

test("sizes are binary only where that is exact", () => {
  assert.deepEqual([10 * 2 ** 20, 10_000_000, 37_500, 2048, 999].map(bytes).map(plain), [
    "10 MiB",
    "10 MB",
    "37.5 kB",
    "2 KiB",
    "999 B",
  ]);
});

test("small ratios keep a decimal", () => {
  assert.deepEqual([0, 0.0471, 0.0996, 0.57, 1].map(percent).map(plain), [
    "0 %",
    "4.7 %",
    "10 %",
    "57 %",
    "100 %",
  ]);
});

test("a key's unit goes to its value", () => {
  assert.deepEqual(quantity("rtt_ms", 600), { name: "RTT", text: "600\u202fms" });
  assert.deepEqual(quantity("forward_queue_bytes", 1_500_000), {
    name: "forward queue",
    text: "1.5\u202fMB",
  });
  assert.deepEqual(quantity("loss_ratio", 0.0001), { name: "loss", text: "0.01\u202f%" });
  assert.deepEqual(quantity("source", "a paper"), { name: "source", text: "a paper" });
});

test("a path's directions are told together", () => {
  const summary = {
    title: "GEO",
    timeout_s: 120,
    forward_queue: "25 packets",
    forward_queue_bytes: 37_500,
    return_queue_bytes: 37_500,
    mtu_bytes: 1500,
    return_queue: "25 packets",
    forward_loss: "none",
    return_loss: "none",
    return_rate_bps: 2e6,
    forward_rate_bps: 20e6,
    rtt_ms: 600,
  };
  assert.deepEqual(
    pathFacts(summary).map(([name, text]) => `${name}: ${plain(text)}`),
    [
      "rate forward / return: 20 Mbit/s / 2 Mbit/s",
      "RTT: 600 ms",
      "queue: 25 packets each way",
      "loss: none",
      "timeout: 120 s",
    ],
  );
});

test("a path with one direction, or none, still shows what it has", () => {
  assert.deepEqual(pathFacts({}), []);
  assert.deepEqual(pathFacts({ return_queue: "1 BDP", other: 3 }), [
    ["return queue", "1 BDP"],
    ["other", "3"],
  ]);
});
