/** Bins of durations: equally wide on a logarithmic scale, with round edges. */

// The preferred numbers of the series R40 (ISO 3), which contains R20, R10 and R5.
const DECADE = [
  100, 106, 112, 118, 125, 132, 140, 150, 160, 170, 180, 190, 200, 212, 224, 236, 250, 265, 280,
  300, 315, 335, 355, 375, 400, 425, 450, 475, 500, 530, 560, 600, 630, 670, 710, 750, 800, 850,
  900, 950
];
const STEPS = [1, 2, 4, 8, 20, 40]; // through the series
const MOST_BINS = 44;
const FEW_BINS = 24; // at most, for a few calls
const LEAST_BINS = 16; // so that one bar of equal durations is not as wide as the histogram
const LEAST_UNITS = 2; // narrower bins would be empty or not, depending on rounding alone

/**
 * The edges of bins that contain all durations from `least` to `most`: from an edge to before the
 * next one.
 *
 * Args:
 *   unit: the resolution of the durations; edges are multiples of it.
 *   calls: their number; few calls get fewer bins.
 */
export function edgesOf(least: number, most: number, unit: number, calls = Infinity): number[] {
  const low = Math.max(least, unit);
  const high = Math.max(most, unit);
  const bins = Math.min(Math.max(2 * Math.sqrt(calls), FEW_BINS), MOST_BINS);
  const step = STEPS.find(each => steps(low, high, each) <= bins) ?? STEPS.at(-1)!;
  const missing = step === STEPS[0] ? LEAST_BINS - steps(low, high, step) : 0;
  const around = Math.max(Math.ceil(missing / 2), 0);
  const edges = least < unit ? [0, unit] : [];
  let at = Math.floor((position(low) - around) / step) * step;
  for (; edges.length < 2 || edges.at(-1)! <= most || at <= position(high) + around; at += step) {
    const edge = Math.floor(value(at) / unit + 1e-6) * unit;
    if (edges.length === 0 ? edge > 0 : edge >= edges.at(-1)! + LEAST_UNITS * unit) {
      edges.push(edge);
    }
  }
  return edges;
}

function steps(low: number, high: number, step: number): number {
  return (position(high) - position(low)) / step + 2;
}

/** The last position in the series whose value is not more than `ns`. */
function position(ns: number): number {
  const decade = Math.floor(Math.log10(ns) + 1e-9);
  const place = DECADE.findIndex(each => (each / 100) * 10 ** decade > ns * (1 + 1e-9));
  return DECADE.length * decade + (place < 0 ? DECADE.length : place) - 1;
}

function value(position: number): number {
  const decade = Math.floor(position / DECADE.length);
  return (DECADE[position - DECADE.length * decade]! / 100) * 10 ** decade;
}

/** The bin of a duration; `edges` contain it. */
export function binOf(edges: readonly number[], ns: number): number {
  let low = 0;
  let high = edges.length - 2;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (edges[middle]! <= ns) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}
