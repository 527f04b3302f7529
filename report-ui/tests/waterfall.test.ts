import assert from "node:assert/strict";
import { test } from "node:test";
import { page } from "../src/page";
import type { PageRequest } from "../src/schema/requests";
import { end, ofPackets, picturesAt, tickStep, words } from "../src/waterfall";

/** With plain spaces, which are easier to read here. */
const plain = (text: string) => text.replaceAll("\u202f", " ");

function request(values: Partial<PageRequest>): PageRequest {
  return {
    path: "/3-50.js",
    type: "script",
    bytes: 50,
    initiator: "/",
    urgency: 1,
    protocol: null,
    asked_s: null,
    first_byte_s: null,
    last_byte_s: null,
    ...values,
  };
}

test("an axis has steps of 1, 2 or 5, and not too many", () => {
  assert.deepEqual(
    [0.9, 1, 5.7, 11.3, 40, 41, 120].map((until) => tickStep(until, 8)),
    [0.2, 0.2, 1, 2, 5, 10, 20],
  );
});

test("an axis ends behind all that there is", () => {
  assert.equal(end([request({ asked_s: 1, first_byte_s: 2 })], { plt_s: null }), 2.04);
  assert.equal(end([request({ asked_s: 1 })], { plt_s: 5 }), 5.1);
  assert.ok(end([], { plt_s: null }) > 0);
});

test("a line is told in words, also where nothing came", () => {
  const [asked_s, first_byte_s, last_byte_s] = [1, 2.5, 3];
  assert.deepEqual(
    [{}, { asked_s }, { asked_s, first_byte_s }, { asked_s, first_byte_s, last_byte_s, initiator: null }].map(
      (values) => plain(words(request(values))),
    ),
    [
      "never asked for, led to by /",
      "asked for at 1.00 s, no response, led to by /, urgency 1",
      "asked for at 1.00 s, response from 2.50 s not all of which came, led to by /, urgency 1",
      "asked for at 1.00 s, response from 2.50 s to 3.00 s, urgency 1",
    ],
  );
});

test("a workload that is a page is known by its name, without what tells files apart", () => {
  assert.deepEqual(page("page:kosek:h1"), { name: "kosek", http: "1", visit: "", beside: "" });
  assert.deepEqual(page("page:kosek:h3:early-cached"), {
    name: "kosek",
    http: "3",
    visit: "early-cached",
    beside: "",
  });
  assert.deepEqual(page("page:a/visit.toml#1a2b3c4d:h3 + duration:30s"), {
    name: "a/visit.toml",
    http: "3",
    visit: "",
    beside: " + duration:30s",
  });
  assert.equal(page("transfer:10485760"), null);
});

test("how many packets of a stream were lost is told where that is known", () => {
  assert.equal(ofPackets(null), "");
  assert.equal(ofPackets({ packets: 1, lost_s: [] }), "; 0 of 1 packet lost");
  assert.equal(ofPackets({ packets: 20, lost_s: [1.5, 2] }), "; 2 of 20 packets lost");
});

test("a film shows at each step what was to be seen last", () => {
  const film = [-0.1, 1, 1.2, 3.9].map((at_s, i) => ({ at_s, jpeg: String(i) }));
  const shown = picturesAt(film, 4, 4).map(({ at, shown }) => [at, shown.jpeg]);
  assert.deepEqual(shown, [
    [1, "1"],
    [2, "2"],
    [3, "2"],
    [4, "3"],
  ]);
  assert.deepEqual(picturesAt([], 4, 4), []);
});
