// The connection with the server: requests with growing numbers, replies to the newest alone, and a new connection when
// one is lost.

import type { ExploredState, ExploreRequest, Reply } from "../schema/explore";

/** Of messages (schemas/explore.toml). */
const FORMAT = 1;

/** How soon a lost connection is tried again, in milliseconds. */
const RETRY_MS = 700;

/** While a slider moves: a state is asked for once the one before has been drawn, or after this time. */
const PATIENCE_MS = 4000;

export interface Listener {
  reply: (reply: Reply) => void;
  /** Whether there is a connection. */
  connected: (is: boolean) => void;
}

export class Connection {
  private socket: WebSocket | null = null;
  private number = 0;
  private askedAt = 0;
  private wanted: ExploredState | null = null;
  private waiting: ReturnType<typeof setTimeout> | undefined;
  private since = 0;
  private busy = false;
  /** A state is being asked for, that was wanted at this time, in milliseconds. */
  onSend: (state: ExploredState, askedAt: number) => void = () => undefined;

  constructor(
    private readonly address: string,
    private readonly listener: Listener,
  ) {
    this.open();
  }

  /** Ask for a state; `atOnce`, or when what was asked for before has come, if that is soon. */
  ask(state: ExploredState, atOnce: boolean): void {
    this.wanted = state;
    this.askedAt = performance.now();
    clearTimeout(this.waiting);
    const left = this.since + PATIENCE_MS - performance.now();
    if (atOnce || !this.busy || left <= 0) this.send();
    else this.waiting = setTimeout(() => this.send(), left);
  }

  /** Whether this is the number of the newest request. */
  isNewest(number: number): boolean {
    return number === this.number;
  }

  /** The first trials of the newest request have come. */
  settled(): void {
    this.busy = false;
    if (this.wanted) {
      clearTimeout(this.waiting);
      this.send();
    }
  }

  private send(): void {
    if (!this.wanted || this.socket?.readyState !== WebSocket.OPEN) return;
    const request: ExploreRequest = { format: FORMAT, number: ++this.number, state: this.wanted };
    this.onSend(this.wanted, this.askedAt);
    this.wanted = null;
    this.busy = true;
    this.since = performance.now();
    this.socket.send(JSON.stringify(request));
  }

  private open(): void {
    const socket = new WebSocket(this.address);
    this.socket = socket;
    socket.addEventListener("open", () => this.listener.connected(true));
    socket.addEventListener("message", ({ data }) => {
      const reply = JSON.parse(String(data)) as Reply;
      if (reply.number === 0 || this.isNewest(reply.number)) this.listener.reply(reply);
    });
    socket.addEventListener("close", () => {
      this.listener.connected(false);
      setTimeout(() => this.open(), RETRY_MS);
    });
  }
}
