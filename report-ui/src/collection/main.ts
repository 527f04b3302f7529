// The entry of the bundle of a site of many runs: draws the page that the body names, and says so where it cannot.

import "../report.css";
import "./collection.css";
import { fail } from "../fail";
import { changesPage } from "./changesPage";
import { comparePage } from "./comparePage";
import { distributionsPage } from "./distributionsPage";
import { failuresPage } from "./failuresPage";
import type { Site } from "./model";
import { runsPage } from "./runsPage";
import { studiesPage, studyPage } from "./studiesPage";

const PAGES: Record<string, (root: HTMLElement, site: Site) => void> = {
  index: runsPage,
  changes: changesPage,
  compare: comparePage,
  distributions: distributionsPage,
  failures: (root, site) => {
    if (window.bentpipeFailures) failuresPage(root, site, window.bentpipeFailures);
    else fail("data/failures.js is missing; make the site again");
  },
  studies: studiesPage,
  study: studyPage,
};

function draw(): void {
  const [root, site] = [document.getElementById("report"), window.bentpipeSite];
  const page = PAGES[document.body.dataset.page ?? ""];
  if (!root || !site || !page) fail("data/site.js is missing; make the site again");
  else page(root, site);
}

draw();
// A link to the same page with other choices.
if (document.body.dataset.page !== "study") addEventListener("hashchange", draw);
