// Asks for everything at once, and stores each reply.
import fs from "node:fs";
import path from "node:path";
import { connect } from "node:quic";
import { existing, within } from "./folder.mjs";

export async function ask(trial) {
  const folder = trial.needed(trial.upload ? "WWW" : "DOWNLOADS");
  const urls = trial.needed("REQUESTS").trim().split(/\s+/).map((url) => new URL(url));
  const requests = urls.map(({ pathname }) => {
    const file = trial.upload ? existing(folder, pathname) : within(folder, pathname);
    if (!file) throw new Error(`REQUESTS: ${pathname}: it must name a file within the folder`);
    return { pathname, file };
  });
  const ca = [fs.readFileSync(path.join(trial.certs, "ca.pem"))];
  const port = urls[0].port || "443";
  // bun's own choice is an IPv4 socket, whatever the server's address.
  const endpoint = { address: urls[0].hostname.startsWith("[") ? "[::]:0" : "0.0.0.0:0" };
  const options = { alpn: trial.alpn, servername: "server", ca, keylog: Boolean(trial.log), endpoint };
  const session = await connect(`${urls[0].hostname}:${port}`, options);
  if (trial.log) session.onkeylog = trial.log;
  await session.opened;
  const ends = await Promise.allSettled(requests.map((request) => exchange(session, trial.upload, request)));
  await session.close();
  const failed = ends.find(({ status }) => status === "rejected");
  if (failed) throw failed.reason;
}

async function exchange(session, upload, { pathname, file }) {
  const line = Buffer.from(`${upload ? "PUT" : "GET"} ${pathname}\r\n`);
  const body = upload ? Buffer.concat([line, fs.readFileSync(file)]) : line;
  const stream = await session.createBidirectionalStream({ body });
  if (upload) {
    for await (const pieces of stream) {
      if (pieces.some((piece) => piece.length)) throw new Error(`${pathname}: answered with bytes`);
    }
    return;
  }
  let to = null;
  for await (const pieces of stream) {
    for (const piece of pieces) {
      to ??= fs.openSync(file, "w");
      fs.writeSync(to, piece);
    }
  }
  fs.closeSync(to ?? fs.openSync(file, "w"));
}
