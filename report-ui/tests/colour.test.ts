import assert from "node:assert/strict";
import { test } from "node:test";
import { background, contrast, ink, luminance, type Scheme } from "../src/colour";

const STEPS = Array.from({ length: 201 }, (_, i) => i / 200);
const SCHEMES: Scheme[] = ["light", "dark"];

test("text on every colour has the contrast that WCAG 2.2 asks for, 4.5", () => {
  for (const scheme of SCHEMES) {
    for (const step of STEPS) {
      const ground = background(step, scheme);
      assert.ok(contrast(ink(ground), ground) >= 4.5, `${scheme} ${step}: ${contrast(ink(ground), ground)}`);
    }
  }
});

test("lightness goes one way, so the order holds without colour", () => {
  for (const scheme of SCHEMES) {
    const lights = STEPS.map((step) => luminance(background(step, scheme)) * (scheme === "light" ? -1 : 1));
    lights.forEach((light, i) =>
      assert.ok(i === 0 || light >= (lights[i - 1] ?? 0), `${scheme} ${STEPS[i]}`),
    );
  }
});

test("values outside the scale take its ends", () => {
  assert.deepEqual(background(-1, "light"), background(0, "light"));
  assert.deepEqual(background(1.2, "dark"), background(1, "dark"));
});

test("contrast of black and white is 21", () => assert.equal(contrast([0, 0, 0], [255, 255, 255]), 21));
