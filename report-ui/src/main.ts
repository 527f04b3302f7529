// The entry of the bundle: draws the page that the body names, and says so where it cannot.

import "./report.css";
import "./trace/trace.css";
import "./waterfall.css";
import { cellPage } from "./cellPage";
import { fail } from "./fail";
import { indexPage } from "./indexPage";
import { watch, watched } from "./watch";

const root = document.getElementById("report");
const { bentpipeRun: run, bentpipeCell: cell } = window;
const { live, page } = document.body.dataset;
if (root && live && page !== "cell") watch(root, run ?? null, Number(live));
else if (!root || !run) fail("data/run.js is missing; make the report again");
else if (page === "index") indexPage(root, run);
else if (cell) {
  cellPage(root, run, cell);
  if (live) watched("../live");
} else fail(`data/cells/${document.body.dataset.slug}.js is missing; make the report again`);
