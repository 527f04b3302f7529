// The controls of a sender: its stack with congestion control and slow start, what is between the ends, and what is
// transferred.

import { h } from "../dom";
import type { ExploredSender, Offer, StackChoice } from "../schema/explore";
import { list, text } from "./controls";
import { COLOURS, SENDERS } from "./overlay";
import { labelOf, option, variant, withOption, type Variant } from "./state";

export interface SenderPanel {
  element: HTMLElement;
  show: (sender: ExploredSender) => void;
}

/** Options that have fields of their own. */
const OWN = ["cc", "ss"];
const HTTP = /^(page|live):/;

export function senderPanel(
  place: number,
  offer: Offer,
  change: (changes: Partial<ExploredSender>) => void,
): SenderPanel {
  let now: ExploredSender = offer.state.senders[place] ?? offer.state.senders[0]!;
  const own = h("div", {});
  let controls = fields(now);
  let stack = variant(now.server).stack;
  const servers = offer.stacks.filter(({ roles }) => roles.includes("server"));
  const stacks = list(
    "Server",
    servers.map(({ name }) => ({ name })),
    (name) => change(ofStack(name)),
  );
  const clients = list(
    "Client",
    offer.stacks.filter(({ roles }) => roles.includes("client")).map(({ name }) => ({ name })),
    (client) => change({ client }),
  );
  const between = text("Between the ends", offer.treatments, (treatment) =>
    change({ treatment: treatment || "direct" }),
  );
  const moved = text("Workload", offer.workloads, (workload) =>
    change({ workload, protocol: HTTP.test(workload) ? now.protocol : "" }),
  );
  const http = list("HTTP", [{ name: "h1" }, { name: "h2" }, { name: "h3" }], (protocol) =>
    change({ protocol }),
  );

  /** Another stack speaks to itself, where it is a client, too; options are a stack's own. */
  function ofStack(name: string): Partial<ExploredSender> {
    const both = servers.find((one) => one.name === name)?.roles.includes("client");
    return both ? { server: name, client: name } : { server: name };
  }
  function fields(sender: ExploredSender): { element: HTMLElement; show: (label: string) => void } {
    const known = offer.stacks.find(({ name }) => name === variant(sender.server).stack);
    return optionFields(known, (next) => change({ server: labelOf(next) }));
  }
  const element = h(
    "fieldset",
    { class: "panel sender", style: `--sender:var(--${COLOURS[place]})` },
    h("legend", {}, h("b", {}, SENDERS[place]!), " Sender"),
    stacks.element,
    own,
    clients.element,
    between.element,
    moved.element,
    http.element,
  );
  own.append(controls.element);
  return {
    element,
    show: (sender) => {
      now = sender;
      if (variant(sender.server).stack !== stack) {
        stack = variant(sender.server).stack;
        controls = fields(sender);
        own.replaceChildren(controls.element);
      }
      stacks.show(variant(sender.server).stack);
      controls.show(sender.server);
      clients.show(sender.client);
      between.show(sender.treatment);
      moved.show(sender.workload);
      http.element.hidden = !HTTP.test(sender.workload);
      http.show(sender.protocol || "h3");
    },
  };
}

/** Fields for the options of a stack: congestion control, slow start, and the others in one. */
function optionFields(
  stack: StackChoice | undefined,
  changed: (next: Variant) => void,
): { element: HTMLElement; show: (label: string) => void } {
  let now: Variant = { stack: stack?.name ?? "", options: [] };
  const known = (name: string) => stack?.options.find((one) => one.name === name);
  const made = OWN.flatMap((name) => {
    const found = known(name);
    if (!found) return [];
    const title = name === "cc" ? "Congestion control" : "Slow start";
    const field = text(
      title,
      found.values.map((value) => ({ name: value })),
      (value) => changed(withOption(now, name, value)),
      "its own",
    );
    field.input.title = found.meaning;
    return [{ name, field }];
  });
  const others = stack?.options.filter(({ name }) => !OWN.includes(name)) ?? [];
  const more = text(
    "Further options",
    others.map(({ name, meaning }) => ({ name: `${name}=`, title: meaning })),
    (value) => {
      const kept = now.options.filter(([name]) => OWN.includes(name));
      changed({ ...now, options: [...kept, ...variant(`x:${value}`).options] });
    },
    others.length > 0
      ? `as in ${others.some(({ name }) => name === "iw") ? "iw=100" : `${others[0]!.name}=…`}`
      : "none",
  );
  return {
    element: h("div", {}, ...made.map(({ field }) => field.element), more.element),
    show: (label) => {
      now = variant(label);
      for (const { name, field } of made) field.show(option(now, name));
      const rest = now.options.filter(([name]) => !made.some((one) => one.name === name));
      more.show(labelOf({ stack: "", options: rest }).slice(1));
    },
  };
}
