// lsquic as an endpoint program, by way of bun's node:quic, in socket mode only (endpoints/CONTRACT.md).
import fs from "node:fs";
import { answer } from "./server.mjs";
import { ask } from "./client.mjs";

const UNSUPPORTED = 127;
const TESTCASES = ["transfer", "handshake", "longrtt", "multiplexing", "upload"];
const ALPN = "hq-interop";

class Unsupported extends Error {}

function needed(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name}: this environment variable must be set (endpoints/CONTRACT.md)`);
  return value;
}

function word(name, words) {
  const value = needed(name);
  if (!words.includes(value)) throw new Unsupported(`${name} = ${value}`);
  return value;
}

function setup() {
  const role = word("ROLE", ["client", "server"]);
  const testcase = word("TESTCASE", TESTCASES);
  const options = (process.env.BENTPIPE_OPTIONS ?? "").trim();
  if (options) throw new Unsupported(`option ${options.split(/[=\s]/)[0]}: there are none`);
  const keylog = process.env.SSLKEYLOGFILE;
  const certs = needed("CERTS");
  const log = keylog ? (line) => fs.appendFileSync(keylog, String(line).trimEnd() + "\n") : null;
  return { role, alpn: ALPN, upload: testcase === "upload", certs, log, needed };
}

async function main(words) {
  if (words.length === 1 && words[0] === "--version") {
    console.log(`lsquic in bun ${process.versions.bun}`);
    return 0;
  }
  if (words.length > 0) {
    console.error("usage: main.mjs [--version]; endpoints/CONTRACT.md says what it does");
    return 2;
  }
  try {
    const trial = setup();
    await (trial.role === "client" ? ask(trial) : answer(trial));
    return 0;
  } catch (error) {
    const unsupported = error instanceof Unsupported;
    console.error(`bentpipe-endpoint-lsquic: ${unsupported ? "not supported: " : ""}${error.message}`);
    return unsupported ? UNSUPPORTED : 1;
  }
}

process.exit(await main(process.argv.slice(2)));
