// Bundle the report into python/bentpipe/report/assets.
//   node build.mjs           build
//   node build.mjs --check   fail unless the committed bundle equals a fresh build
//   node build.mjs --tests   bundle the tests into dist/tests
import { build } from "esbuild";
import { mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
const assets = path.join(here, "../python/bentpipe/report/assets");
process.chdir(here);

/** The bundle as file name → bytes, with the licenses of what went into it. */
async function bundle() {
  const result = await build({
    entryPoints: {
      report: "src/main.ts",
      collection: "src/collection/main.ts",
      explore: "src/explore/main.ts",
    },
    outdir: "assets",
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    format: "iife",
    target: ["chrome111", "firefox113", "safari16.4"],
    charset: "utf8",
    legalComments: "none",
    banner: { js: "/* Bentpipe report. Third-party notices: licenses.txt */" },
    logLevel: "warning",
  });
  const files = new Map(result.outputFiles.map((file) => [path.basename(file.path), file.contents]));
  files.set("licenses.txt", new TextEncoder().encode(await licenses(result.metafile)));
  return files;
}

/** The licenses and notices of the packages that the bundle contains, as their terms ask. */
async function licenses(metafile) {
  const packages = new Set();
  for (const input of Object.keys(metafile.inputs)) {
    const found = input.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//g)?.at(-1);
    if (found) packages.add(input.slice(0, input.lastIndexOf(found) + found.length - 1));
  }
  const parts = [];
  for (const folder of [...packages].sort()) {
    const { name, version, license } = JSON.parse(await readFile(path.join(folder, "package.json"), "utf8"));
    const inside = (await readdir(folder, { recursive: true })).filter(
      (file) => !/(^|\/)node_modules\//.test(file),
    );
    const files = inside.filter((file) =>
      /^(licenses\/)?(licen[cs]e|notice|copying)[^/.]*(\.txt|\.md)?$/i.test(file),
    );
    files.sort();
    const bodies = [];
    for (const file of files) {
      const full = path.join(folder, file);
      if ((await stat(full)).isFile()) bodies.push((await readFile(full, "utf8")).trim());
    }
    parts.push([`${name} ${version} (${license})`, ...bodies].join("\n\n"));
  }
  return parts.join(`\n\n${"-".repeat(80)}\n\n`).replace(/\r\n/g, "\n");
}

async function bundleTests() {
  const tests = (await readdir("tests")).filter((file) => file.endsWith(".test.ts"));
  await rm("dist/tests", { recursive: true, force: true });
  await build({
    entryPoints: tests.map((file) => `tests/${file}`),
    outdir: "dist/tests",
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    format: "esm",
    logLevel: "warning",
  });
}

async function check(files) {
  for (const [name, bytes] of files) {
    const committed = await readFile(path.join(assets, name)).catch(() => null);
    if (committed === null || !committed.equals(bytes)) {
      console.error(
        `${path.join(assets, name)} differs from a fresh build; run: npm run build, and commit it`,
      );
      process.exitCode = 1;
    }
  }
}

async function write(files) {
  await mkdir(assets, { recursive: true });
  for (const [name, bytes] of files) {
    await writeFile(path.join(assets, name), bytes);
    console.log(`${name} ${(bytes.length / 1000).toFixed(0)} kB`);
  }
}

if (process.argv.includes("--tests")) await bundleTests();
else if (process.argv.includes("--check")) await check(await bundle());
else await write(await bundle());
