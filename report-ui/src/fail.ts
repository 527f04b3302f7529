// What is said of a page that could not be drawn.

import { h } from "./dom";

export function fail(message: string): void {
  document.body.prepend(
    h("p", { class: "script-error", role: "alert" }, `This page could not be drawn: ${message}`),
  );
}

addEventListener("error", (event) => fail(event.message));
addEventListener("unhandledrejection", (event) => fail(String(event.reason)));
