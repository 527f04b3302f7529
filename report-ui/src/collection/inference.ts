// What repeated measurements allow to be said: the statistics of `python/bentpipe/analysis/inference.py`, for pairs of
// runs that nobody could have chosen before the page was open. 20 runs are 190 pairs, of hundreds of cells and a score
// of measures each: too many to bring along, and half an hour to compute.
//
// That module says what the model is, and where it comes from. tests/python/test_site_comparison.py holds what comes out
// here against `bentpipe compare`, over drawn runs.

/** Relative: pairs that differ by less are equal; the values of a site have 7 digits. */
const EQUAL = 1e-6;

/** How many times as large the second of two samples is. */
export interface Ratio {
  value: number;
  /** Of such a difference or a greater one where there is none; null where a sample has a single value. */
  p: number | null;
  /** The interval of the ratio; null likewise. It takes longer than p. */
  interval: (confidence: number) => [low: number, high: number] | null;
}

/** The ratio of geometric means, second / first; null where a sample is empty or has a value that is not positive and
 * finite. */
export function ratio(first: number[], second: number[]): Ratio | null {
  if (!isPositive(first) || !isPositive(second)) return null;
  const [a, b] = [onLogarithms(first), onLogarithms(second)];
  const difference = b.mean - a.mean;
  const value = Math.exp(difference);
  if (a.error === null || b.error === null) return { value, p: null, interval: () => null };
  const error = a.error + b.error;
  if (error === 0) return { value, p: difference === 0 ? 1 : 0, interval: () => [value, value] };
  const freedom = error ** 2 / (a.error ** 2 / (first.length - 1) + b.error ** 2 / (second.length - 1));
  return tRatio(difference, error, freedom);
}

/** The same where each value of `second` belongs to the one of `first` in its place. */
export function pairedRatio(first: number[], second: number[]): Ratio | null {
  if (!isPositive(first) || !isPositive(second)) return null;
  const ratios = second.map((value, i) => value / first[i]!);
  let { mean: difference, error } = onLogarithms(ratios);
  if (error !== null && Math.max(...ratios) / Math.min(...ratios) - 1 < EQUAL) {
    error = 0;
    if (Math.abs(difference) < EQUAL) difference = 0;
  }
  const value = Math.exp(difference);
  if (error === null) return { value, p: null, interval: () => null };
  if (error === 0) return { value, p: difference === 0 ? 1 : 0, interval: () => [value, value] };
  return tRatio(difference, error, first.length - 1);
}

/** A ratio by the difference of the means of logarithms, the variance of that, and the degrees of freedom. */
function tRatio(difference: number, error: number, freedom: number): Ratio {
  const deviation = Math.sqrt(error);
  return {
    value: Math.exp(difference),
    p: tTest(difference / deviation, freedom),
    interval: (confidence) => {
      const reach = tQuantile(confidence, freedom) * deviation;
      return [Math.exp(difference - reach), Math.exp(difference + reach)];
    },
  };
}

/** Of positive values; null if there are none, or others. */
export function geometricMean(values: number[]): number | null {
  return isPositive(values) ? Math.exp(onLogarithms(values).mean) : null;
}

function isPositive(values: number[]): boolean {
  return values.length > 0 && values.every((value) => value > 0 && value < Infinity);
}

/** Mean of the logarithms, and the variance of that mean; null for a single value. */
function onLogarithms(values: number[]): { mean: number; error: number | null } {
  const logarithms = values.map(Math.log);
  const [first = 0] = logarithms;
  if (logarithms.every((one) => one === first)) return { mean: first, error: values.length > 1 ? 0 : null };
  const mean = logarithms.reduce((sum, one) => sum + one, 0) / values.length;
  const squares = logarithms.reduce((sum, one) => sum + (one - mean) ** 2, 0);
  return { mean, error: squares / (values.length - 1) / values.length };
}

/** Each p by the rule of Benjamini and Hochberg. Where nothing could be tested, null stays null and does not count. */
export function adjusted(pValues: (number | null)[]): (number | null)[] {
  const known = pValues.flatMap((p, place) => (p === null ? [] : [{ p, place }])).sort((a, b) => a.p - b.p);
  const result: (number | null)[] = pValues.map(() => null);
  let least = 1;
  for (let rank = known.length; rank > 0; rank--) {
    const { p, place } = known[rank - 1]!;
    least = Math.min(least, p * (known.length / rank));
    result[place] = least;
  }
  return result;
}

/** How probable |t| or more is under Student's t distribution. */
export function tTest(t: number, freedom: number): number {
  const whole = freedom + t * t;
  return beta(freedom / whole, (t * t) / whole, freedom / 2, 0.5);
}

/** The t that so great a share of values does not exceed, of either sign. */
export function tQuantile(confidence: number, freedom: number): number {
  let [low, high] = [0, 1];
  while (tTest(high, freedom) > 1 - confidence) high *= 2;
  for (let i = 0; i < 200; i++) {
    const middle = (low + high) / 2;
    if (middle === low || middle === high) break;
    if (tTest(middle, freedom) > 1 - confidence) low = middle;
    else high = middle;
  }
  return high;
}

/** The regularised incomplete beta function of `x` from 0 to 1; `rest` is 1 - x, to the last digit. */
function beta(x: number, rest: number, a: number, b: number): number {
  if (x === 0 || rest === 0) return x;
  if (x > (a + 1) / (a + b + 2)) return 1 - beta(rest, x, b, a);
  const logarithm = logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log(rest);
  return Math.exp(logarithm) / (a * fraction(x, a, b));
}

function fraction(x: number, a: number, b: number): number {
  let result = 1;
  for (let n = 200; n > 0; n--) {
    const m = n >> 1;
    const d =
      n % 2
        ? (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1))
        : (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    result = 1 + d / result;
  }
  return result;
}

/** Stirling's series (Abramowitz and Stegun, 6.1.41), of an argument that the recurrence has made large. */
function logGamma(x: number): number {
  let [shifted, product] = [x, 1];
  while (shifted < 12) product *= shifted++;
  const square = 1 / (shifted * shifted);
  const series = [1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360].reduceRight(
    (sum, coefficient) => sum * square + coefficient,
    0,
  );
  return (
    (shifted - 0.5) * Math.log(shifted) -
    shifted +
    0.5 * Math.log(2 * Math.PI) +
    series / shifted -
    Math.log(product)
  );
}
