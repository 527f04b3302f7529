// The colour of an efficiency. Lightness changes in one direction over the whole scale, so the order also holds
// for colour-blind readers and on grey paper: the better, the farther from the page's own colour.

type Rgb = readonly [number, number, number];
export type Scheme = "light" | "dark";

const STOPS: Record<Scheme, Rgb[]> = {
  light: [
    [246, 243, 226],
    [205, 226, 196],
    [124, 190, 187],
    [52, 128, 168],
    [27, 56, 112],
  ],
  dark: [
    [29, 36, 52],
    [32, 66, 96],
    [38, 112, 128],
    [104, 170, 140],
    [228, 226, 146],
  ],
};

const INKS: Rgb[] = [
  [4, 6, 9],
  [255, 255, 255],
];

/** Background for an efficiency between 0 and 1; values outside are clamped. */
export function background(efficiency: number, scheme: Scheme): Rgb {
  const stops = STOPS[scheme];
  const place = Math.min(1, Math.max(0, efficiency)) * (stops.length - 1);
  const left = Math.min(Math.floor(place), stops.length - 2);
  const [a, b] = [stops[left]!, stops[left + 1]!];
  const mix = (i: 0 | 1 | 2) => Math.round(a[i] + (b[i] - a[i]) * (place - left));
  return [mix(0), mix(1), mix(2)];
}

/** The ink, near black or white, that reads better on `ground`. */
export function ink(ground: Rgb): Rgb {
  return contrast(INKS[0]!, ground) >= contrast(INKS[1]!, ground) ? INKS[0]! : INKS[1]!;
}

/** Contrast ratio of two colours, 1 to 21 (WCAG 2.2, "contrast ratio"). */
export function contrast(a: Rgb, b: Rgb): number {
  const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

/** Relative luminance, 0 to 1 (WCAG 2.2). */
export function luminance(colour: Rgb): number {
  const [r, g, b] = colour.map((part) => {
    const c = part / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** CSS properties for both schemes; the style sheet picks one, so no script runs when the scheme changes. */
export function properties(efficiency: number): string {
  return (["light", "dark"] as const)
    .map((scheme) => {
      const ground = background(efficiency, scheme);
      return `--${scheme}-ground:rgb(${ground.join(" ")});--${scheme}-ink:rgb(${ink(ground).join(" ")})`;
    })
    .join(";");
}
