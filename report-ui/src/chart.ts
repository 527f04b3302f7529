// ECharts, reduced to what the report draws, in the colours of the style sheet.
//
// ECharts because it has lines, scatter, a shared tooltip and SVG output in one place, and drops what is not imported.
// SVG rather than canvas: it prints sharply and can be saved for a paper. Plots of packets are drawn on a canvas,
// which is the faster the more dots there are, and saved as SVG all the same.

import { CustomChart, LineChart, ScatterChart } from "echarts/charts";
import {
  AriaComponent,
  GridComponent,
  MarkAreaComponent,
  MarkLineComponent,
  TooltipComponent,
} from "echarts/components";
import { type EChartsCoreOption, init, use } from "echarts/core";
import { CanvasRenderer, SVGRenderer } from "echarts/renderers";
import { h } from "./dom";

use([
  CustomChart,
  LineChart,
  ScatterChart,
  AriaComponent,
  GridComponent,
  MarkAreaComponent,
  MarkLineComponent,
  TooltipComponent,
  CanvasRenderer,
  SVGRenderer,
]);

export type Option = EChartsCoreOption;
export type Chart = ReturnType<typeof init>;

/** Colours of the style sheet in the current scheme. */
export interface Theme {
  ink: string;
  muted: string;
  rule: string;
  paper: string;
  accent: string;
  signal: string;
  failure: string;
  series: string[];
  /** A colour by its name in the style sheet. */
  of: (name: string) => string;
}

function theme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    ink: of("ink"),
    muted: of("muted"),
    rule: of("rule"),
    paper: of("paper"),
    accent: of("accent"),
    signal: of("signal"),
    failure: of("failure"),
    series: Array.from({ length: 8 }, (_, i) => of(`series-${i + 1}`)),
    of,
  };
}

export interface Drawing {
  /** What the chart shows, for those who cannot see it. */
  label: string;
  height: number;
  renderer?: "canvas" | "svg";
  /** Series of one name and type have the same keys in every option, so that they can be kept, which is faster. */
  steady?: boolean;
  /** The numbers that it shows, as CSV. */
  csv?: () => string;
  /** The option in the colours of a theme. */
  option: (theme: Theme) => Option;
}

/** Draw into `host`, and again when the window, the colour scheme or the medium changes, until it is stopped. */
function draw(host: HTMLElement, drawing: Drawing): Required<Pick<Figure, "chart" | "redraw" | "stop">> {
  host.setAttribute("role", "img");
  host.setAttribute("aria-label", drawing.label);
  const chart = init(host, null, { renderer: drawing.renderer ?? "svg" });
  let drawn = "";
  const redraw = () => {
    const option = whole(drawing);
    const series = drawing.steady ? list(option) : "";
    chart.setOption(option, { notMerge: series === "" || series !== drawn });
    drawn = series;
  };
  const fit = () => {
    chart.resize();
    redraw();
  };
  redraw();
  const resized = new ResizeObserver(() => {
    if (host.clientWidth > 0 && host.clientWidth !== chart.getWidth()) fit();
  });
  resized.observe(host);
  const changes = [
    [matchMedia("(prefers-color-scheme: dark)"), redraw],
    [matchMedia("print"), fit],
  ] as const;
  changes.forEach(([media, act]) => media.addEventListener("change", act));
  const stop = () => {
    resized.disconnect();
    changes.forEach(([media, act]) => media.removeEventListener("change", act));
    chart.dispose();
  };
  return { chart, redraw, stop };
}

/** The names and types of the series, in their order. */
function list({ series }: Option): string {
  return JSON.stringify((series as { name: string; type: string }[]).map(({ name, type }) => [name, type]));
}

function whole(drawing: Drawing): Option {
  const colours = theme();
  return { ...common(colours), ...drawing.option(colours) };
}

/** The chart as an SVG file, as large as it is in the page. */
function svgOf(chart: Chart, drawing: Drawing): string {
  const size = { width: chart.getWidth(), height: chart.getHeight() };
  const copy = init(null, null, { renderer: "svg", ssr: true, ...size });
  copy.setOption(whole(drawing));
  const text = copy.renderToSVGString();
  copy.dispose();
  return text;
}

/** Have the browser save a file. */
export function saveFile(name: string, type: string, content: string): void {
  const address = URL.createObjectURL(new Blob([content], { type }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/** Pixels of a PNG for each of the page. */
const FINE = 2;

function common({ ink, paper }: Theme): Option {
  return {
    animation: false,
    backgroundColor: paper,
    textStyle: { fontFamily: "system-ui, sans-serif", color: ink },
  };
}

/** The part of an axis that all charts share. */
export function axis(name: string, { muted, rule }: Theme, vertical = false): object {
  return {
    type: "value",
    name,
    nameLocation: "middle",
    nameGap: vertical ? 48 : 30,
    nameTextStyle: { color: muted, fontSize: 12 },
    axisLabel: { color: muted, fontSize: 11, hideOverlap: true },
    axisLine: { show: !vertical, onZero: false, lineStyle: { color: muted } },
    axisTick: { show: !vertical, lineStyle: { color: muted } },
    splitLine: { lineStyle: { color: rule } },
  };
}

export function tooltip({ ink, paper, rule }: Theme): object {
  return {
    confine: true,
    backgroundColor: paper,
    borderColor: rule,
    textStyle: { color: ink, fontSize: 12 },
    transitionDuration: 0,
  };
}

/** A chart with its heading and buttons to save it. */
export function figure(title: string, file: string, drawing: Drawing, ...notes: (Node | string)[]): Figure {
  const host = h("div", { class: "chart", style: `height:${drawing.height}px` });
  const element = h(
    "figure",
    {},
    h(
      "figcaption",
      {},
      h("span", {}, title),
      h("span", { class: "saves" }, ...saveButtons(title, file, drawing, () => result.chart)),
    ),
    ...notes,
    host,
  );
  const result: Figure = { element, host, start: () => Object.assign(result, draw(host, drawing)) };
  return result;
}

function saveButtons(
  title: string,
  file: string,
  drawing: Drawing,
  drawn: () => Chart | undefined,
): HTMLElement[] {
  const button = (format: string, what: string, act: (chart: Chart) => void) => {
    const made = h(
      "button",
      {
        type: "button",
        class: "save",
        title: `Save ${what} as ${format}`,
        "aria-label": `${title}: save as ${format}`,
      },
      format,
    );
    made.addEventListener("click", () => {
      const chart = drawn();
      if (chart) act(chart);
    });
    return made;
  };
  const { csv, renderer } = drawing;
  const made = [
    button("SVG", "this chart", (chart) => saveFile(`${file}.svg`, "image/svg+xml", svgOf(chart, drawing))),
  ];
  if (renderer === "canvas") {
    made.push(
      button("PNG", "this chart", (chart) =>
        h("a", {
          href: chart.getDataURL({ type: "png", pixelRatio: FINE }),
          download: `${file}.png`,
        }).click(),
      ),
    );
  }
  if (csv) made.push(button("CSV", "its numbers", () => saveFile(`${file}.csv`, "text/csv", csv())));
  return made;
}

export interface Figure {
  element: HTMLElement;
  /** What the chart is drawn into. */
  host: HTMLElement;
  /** Draw it; only once the element is in the page and has a width. */
  start: () => void;
  chart?: Chart;
  redraw?: () => void;
  /** Take it down again. */
  stop?: () => void;
}
