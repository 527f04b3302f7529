// What sets the kinds of plots apart: their titles, their axes, and what their values are.

import { bytes, duration, goodput } from "../format";
import type { Kind } from "./model";

export interface Face {
  title: string;
  /** The vertical axis, with its unit. */
  axis: string;
  height: number;
  /** The axis begins at 0 also where no value is near it. */
  fromZero: boolean;
  tick: (value: number) => string;
  show: (value: number) => string;
  note: string;
}

const trim = (value: number) => String(Number(value.toPrecision(8)));
const mega = (value: number) => trim(value / 1e6);
const packet = (value: number) => `packet ${Math.round(value)}`;

export const FACES: Record<Kind, Face> = {
  offset: {
    title: "Offset",
    axis: "stream offset, MB",
    height: 380,
    fromZero: false,
    tick: mega,
    show: (value) => `${(value / 1e6).toFixed(3)}\u202fMB`,
    note: "Where each STREAM frame begins, at the time it was sent, with the ideal sender at the same place; how many distinct bytes had arrived (at the receiver) or been acknowledged (at the sender).",
  },
  queue: {
    title: "Queue",
    axis: "waiting, kB",
    height: 200,
    fromZero: true,
    tick: (value) => trim(value / 1e3),
    show: bytes,
    note: "Bytes of this connection that were sent and still wait, in all queues of the path together, as their arrival shows: whatever a one-way delay has above the least counts as waiting, also jitter, frames and transmission. A mark (CE) or a drop stands at what waited when its packet was sent. What does not arrive is not counted: where a queue drops what it had taken in, as CoDel does, more waited.",
  },
  sojourn: {
    title: "Time in queues",
    axis: "sojourn time, ms",
    height: 200,
    fromZero: true,
    tick: trim,
    show: (ms) => duration(ms / 1e3),
    note: "One-way delay of each packet, on the way of the data, above the least of this connection, at the time it was sent: its time in all queues of the path together, with jitter, frames, and the transmission of larger packets. What did not arrive stands at 0: nobody saw how long it waited.",
  },
  capacity: {
    title: "Capacity",
    axis: "Mbit/s",
    height: 200,
    fromZero: true,
    tick: mega,
    show: goodput,
    note: "What the links give, each way that changes: 0 where nothing is sent or received. Of a carrier that terminals share, all of it.",
  },
  es_n0: {
    title: "Es/N0 and MODCOD",
    axis: "dB",
    height: 220,
    fromZero: false,
    tick: trim,
    show: (dB) => `${dB.toFixed(2)}\u202fdB`,
    note: "What the terminal receives, or what is received of it, and what the MODCOD in use needs. Frames are lost where it needs more.",
  },
  link_delay: {
    title: "Delay of links",
    axis: "ms",
    height: 200,
    fromZero: false,
    tick: trim,
    show: (ms) => duration(ms / 1e3),
    note: "From one end of a link to the other, without queues and transmission, at the time a packet is sent.",
  },
  link_loss: {
    title: "Loss of links",
    axis: "%",
    height: 160,
    fromZero: true,
    tick: trim,
    show: (share) => `${trim(share)}\u202f%`,
    note: "The probability with which a packet that is sent then is lost.",
  },
  elevation: {
    title: "Elevation",
    axis: "degrees",
    height: 180,
    fromZero: false,
    tick: trim,
    show: (degrees) => `${degrees.toFixed(1)}°`,
    note: "Of the satellite that serves the terminal, above the terminal's horizon.",
  },
  in_view: {
    title: "Satellites in view",
    axis: "satellites",
    height: 160,
    fromZero: true,
    tick: trim,
    show: trim,
    note: "How many the terminal could use.",
  },
  number: {
    title: "Packet number",
    axis: "packet number",
    height: 260,
    fromZero: false,
    tick: trim,
    show: packet,
    note: "Of each packet number space (TCP: of segments), at the time they were sent.",
  },
  size: {
    title: "Packet size",
    axis: "IP packet, bytes",
    height: 200,
    fromZero: true,
    tick: trim,
    show: (value) => `${Math.round(value)}\u202fB`,
    note: "Each IP packet, at the time it was sent.",
  },
  rate: {
    title: "Data rate",
    axis: "Mbit/s",
    height: 240,
    fromZero: true,
    tick: mega,
    show: goodput,
    note: "Of the way that the data takes. Raw counts IP packets, payload the stream bytes that are new.",
  },
  rate_back: {
    title: "Data rate back",
    axis: "Mbit/s",
    height: 200,
    fromZero: true,
    tick: mega,
    show: goodput,
    note: "Of the way that the ACKs take.",
  },
  in_flight: {
    title: "Bytes in flight",
    axis: "in flight, kB",
    height: 240,
    fromZero: true,
    tick: (value) => trim(value / 1e3),
    show: bytes,
    note: "Of the sender of the data, as seen from outside by the rules of RFC 9002; packets declared lost leave with the next packet.",
  },
  rtt: {
    title: "RTT",
    axis: "latest RTT, ms",
    height: 200,
    fromZero: false,
    tick: trim,
    show: (ms) => duration(ms / 1e3),
    note: "Samples that ACKs gave the sender of the data (RFC 9002, section 5.1).",
  },
  acks: {
    title: "ACK ranges",
    axis: "packet number",
    height: 260,
    fromZero: false,
    tick: trim,
    show: packet,
    note: "What each ACK says to have arrived and, between its ranges, to be missing.",
  },
  delay: {
    title: "One-way delay",
    axis: "delay, ms",
    height: 200,
    fromZero: false,
    tick: trim,
    show: (ms) => duration(ms / 1e3),
    note: "From each packet's sender to its receiver, at the time it was sent. What is above the least is time in queues.",
  },
};
