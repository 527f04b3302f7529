// Mouse, pen, finger and keys on a plot: select, move and zoom a time window, and point at a time.
//
//   drag            select a window          shift + drag, shift + wheel   move it
//   double click    the whole transfer       ctrl or ⌘ + wheel, pinch      zoom about the pointer
//   + − ← → 0       as one expects           shift + ← →                   move the pointer
//
// The plain wheel is left to the page, which is longer than a window.

import { h } from "../dom";
import { moved, zoomed, type Span } from "./window";

export interface Target {
  span: () => Span;
  show: (span: Span) => void;
  reset: () => void;
  /** The time that the reader points at, or null. */
  pointed: () => number | null;
  point: (time: number | null) => void;
  /** Left edge and width of the plot within the element, in pixels. */
  area: () => { left: number; width: number };
}

/** A drag shorter than this is a click, in pixels. */
const CLICK = 4;

export function listen(element: HTMLElement, target: Target): void {
  const timeAt = (clientX: number) => {
    const { left, width } = target.area();
    const { from, to } = target.span();
    const share = (clientX - element.getBoundingClientRect().left - left) / width;
    return from + Math.min(1, Math.max(0, share)) * (to - from);
  };
  element.addEventListener("pointermove", (event) => target.point(timeAt(event.clientX)));
  element.addEventListener("pointerleave", () => target.point(null));
  element.addEventListener("dblclick", target.reset);
  element.addEventListener("wheel", (event) => wheel(event, target, timeAt), { passive: false });
  element.addEventListener("keydown", (event) => {
    if (key(event, target)) event.preventDefault();
  });
  drags(element, target, timeAt);
}

function wheel(event: WheelEvent, target: Target, timeAt: (clientX: number) => number): void {
  const pixels = (event.deltaY || event.deltaX) * (event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 20 : 1);
  if (event.ctrlKey || event.metaKey)
    target.show(zoomed(target.span(), 1.002 ** pixels, timeAt(event.clientX)));
  else if (event.shiftKey || event.deltaX !== 0)
    target.show(moved(target.span(), (event.deltaX || pixels) / 800));
  else return;
  event.preventDefault();
}

function key(event: KeyboardEvent, target: Target): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  const { from, to } = target.span();
  const at = target.pointed() ?? (from + to) / 2;
  const step = event.key === "ArrowLeft" ? -1 : 1;
  switch (event.key) {
    case "ArrowLeft":
    case "ArrowRight":
      if (event.shiftKey) target.point(Math.min(to, Math.max(from, at + (step * (to - from)) / 200)));
      else target.show(moved({ from, to }, step / 8));
      return true;
    case "+":
    case "=":
      target.show(zoomed({ from, to }, 0.5, at));
      return true;
    case "-":
      target.show(zoomed({ from, to }, 2, at));
      return true;
    case "0":
    case "Escape":
      target.reset();
      return true;
    default:
      return false;
  }
}

function drags(element: HTMLElement, target: Target, timeAt: (clientX: number) => number): void {
  const brush = h("div", { class: "brush", hidden: true });
  element.append(brush);
  element.addEventListener("pointerdown", (down) => {
    if (down.button !== 0) return;
    const begin = { x: down.clientX, time: timeAt(down.clientX), span: target.span() };
    const moves = down.shiftKey || down.pointerType === "touch";
    element.setPointerCapture(down.pointerId);
    const move = (event: PointerEvent) => {
      const by = event.clientX - begin.x;
      if (moves) target.show(moved(begin.span, -by / target.area().width));
      else if (Math.abs(by) >= CLICK) cover(brush, element, target.area(), [begin.x, event.clientX]);
    };
    const up = (event: PointerEvent) => {
      ["pointermove", "pointerup", "pointercancel"].forEach((name, i) =>
        element.removeEventListener(name, (i === 0 ? move : up) as EventListener),
      );
      brush.hidden = true;
      if (moves || event.type !== "pointerup" || Math.abs(event.clientX - begin.x) < CLICK) return;
      const end = timeAt(event.clientX);
      target.show({ from: Math.min(begin.time, end), to: Math.max(begin.time, end) });
    };
    element.addEventListener("pointermove", move);
    element.addEventListener("pointerup", up);
    element.addEventListener("pointercancel", up);
  });
}

/** Lay the brush over what is selected between two places, cut at the plot's edges. */
function cover(
  brush: HTMLElement,
  element: HTMLElement,
  { left, width }: { left: number; width: number },
  ends: [number, number],
): void {
  const origin = element.getBoundingClientRect().left;
  const [from, to] = ends
    .map((x) => Math.min(left + width, Math.max(left, x - origin)))
    .sort((a, b) => a - b) as [number, number];
  brush.hidden = false;
  brush.style.left = `${from}px`;
  brush.style.width = `${to - from}px`;
}
