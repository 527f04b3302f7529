// What can be done with a state: take it back, hand it on, keep it, stand it beside others.

import { h } from "../dom";
import type { ExploredState, PathOfState } from "../schema/explore";
import { id } from "./controls";
import type { History } from "./state";

export interface Acts {
  undo: () => void;
  redo: () => void;
  pin: () => void;
  seeds: (count: number) => void;
  /** Show a second sender, or one alone. */
  second: () => void;
  save: () => void;
}

export interface Toolbar {
  element: HTMLElement;
  /** Show what can be done; `path` is null until that of the present state has come. */
  show: (history: History<ExploredState>, path: PathOfState | null, isPinned: boolean) => void;
}

const SEEDS = [1, 3, 10, 30, 100];

export function toolbar(acts: Acts): Toolbar {
  const button = (text: string, title: string, act: () => void) => {
    const made = h("button", { type: "button", title }, text);
    made.addEventListener("click", act);
    return made;
  };
  let commands = "";
  const undo = button("Undo", "Ctrl+Z", acts.undo);
  const redo = button("Redo", "Ctrl+Shift+Z", acts.redo);
  const link = button("Copy link", "An address that restores this state while this server runs", () =>
    copy(link, location.href),
  );
  const command = button("Copy as command", "The bentpipe run … that does the same", () =>
    copy(command, commands),
  );
  const save = button("Save as scenario", "The path as a file for --scenario", acts.save);
  const pin = button("Pin", "Keep these curves to compare others with", acts.pin);
  const second = button("One sender", "Show one sender alone, or two", acts.second);
  const seeds = h("select", { id: id() }, ...SEEDS.map((count) => h("option", {}, String(count))));
  seeds.addEventListener("change", () => acts.seeds(Number(seeds.value)));
  const shown = h("pre", { class: "commands", tabindex: 0, "aria-label": "The command that does the same" });
  addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z" || writes(event.target)) return;
    event.preventDefault();
    (event.shiftKey ? acts.redo : acts.undo)();
  });
  const element = h(
    "div",
    { class: "toolbar" },
    h(
      "div",
      { class: "buttons", role: "group", "aria-label": "This state" },
      undo,
      redo,
      pin,
      second,
      h("span", { class: "seeds-of" }, h("label", { for: seeds.id }, "Seeds"), seeds),
      link,
      command,
      save,
    ),
    h("details", { class: "as-command" }, h("summary", {}, "As a command"), shown),
  );
  return {
    element,
    show: (history, path, isPinned) => {
      undo.disabled = !history.canUndo;
      redo.disabled = !history.canRedo;
      pin.textContent = isPinned ? "Unpin" : "Pin";
      second.textContent = history.now.senders.length > 1 ? "One sender" : "Two senders";
      const count = String(history.now.seeds);
      if (![...seeds.options].some((one) => one.value === count)) seeds.append(h("option", {}, count));
      seeds.value = count;
      commands = path ? path.commands.join("\n") : "";
      command.disabled = save.disabled = path === null;
      shown.textContent = path ? `${commands}\n${path.again}` : "";
    },
  };
}

/** Whether keys go into a text, which has its own way to take them back. */
function writes(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLTextAreaElement || (target instanceof HTMLInputElement && target.type !== "range")
  );
}

/** Copy a text; its button says so. */
function copy(button: HTMLButtonElement, text: string): void {
  const before = button.dataset.name ?? button.textContent ?? "";
  button.dataset.name = before;
  const say = (said: string) => {
    button.textContent = said;
    setTimeout(() => (button.textContent = before), 1500);
  };
  navigator.clipboard.writeText(text).then(
    () => say("Copied"),
    () => say("Not copied"),
  );
}
