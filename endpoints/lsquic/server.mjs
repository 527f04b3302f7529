// Answers `GET /path` with the file, or with RESET_STREAM; in `upload` it stores what `PUT /path` brings.
import { createPrivateKey } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { listen } from "node:quic";
import { existing, within } from "./folder.mjs";

const REFUSED = 1n;
// A question longer than this is none.
const LONGEST = 4096;

export async function answer(trial) {
  const folder = trial.needed(trial.upload ? "DOWNLOADS" : "WWW");
  const key = createPrivateKey(fs.readFileSync(path.join(trial.certs, "priv.key")));
  const certs = [fs.readFileSync(path.join(trial.certs, "cert.pem"))];
  const serve = (session) => {
    if (trial.log) session.onkeylog = trial.log;
    session.onstream = (stream) => {
      reply(stream, folder, trial.upload).catch(() => {}); // the client has gone, or wants no more of this
    };
    session.closed.catch(() => {});
  };
  const listening = trial.needed("BENTPIPE_LISTEN");
  const options = { sni: { "*": { keys: [key], certs } }, alpn: [trial.alpn], keylog: Boolean(trial.log) };
  await listen(serve, { ...options, endpoint: { address: listening } });
  console.log("ready");
  await new Promise((resolve) => process.once("SIGTERM", resolve));
}

async function reply(stream, folder, upload) {
  const all = await question(stream, upload);
  const [, method, name] = /^(GET|PUT) (\/[^\r\n]*)/.exec(all.subarray(0, LONGEST).toString()) ?? [];
  const wanted = method === (upload ? "PUT" : "GET");
  const file = wanted ? (upload ? within(folder, name) : existing(folder, name)) : null;
  if (!file) {
    stream.resetStream(REFUSED);
    return;
  }
  if (upload) fs.writeFileSync(file, all.subarray(all.indexOf("\n") + 1));
  stream.setBody(upload ? new Uint8Array(0) : fs.readFileSync(file));
}

/** All that the client sends; of what is no upload, no more than a question's worth. */
async function question(stream, upload) {
  const pieces = [];
  let size = 0;
  for await (const batch of stream) {
    for (const piece of batch) {
      pieces.push(piece);
      size += piece.length;
    }
    if (!upload && size > LONGEST) break;
  }
  return Buffer.concat(pieces);
}
