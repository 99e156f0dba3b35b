/** The ticks of the time axis and their labels. */

export interface Tick {
  readonly ns: number;
  readonly label: string;
}

const UNITS: readonly (readonly [string, number])[] = [
  ['s', 1e9],
  ['ms', 1e6],
  ['µs', 1e3],
  ['ns', 1]
];
const MOST_DIGITS = 7;

/** At most `most` ticks in steps of 1, 2 or 5 times a power of ten. */
export function ticks(from: number, to: number, most: number): Tick[] {
  const step = niceStep((to - from) / Math.max(most, 1));
  const first = Math.ceil(from / step);
  const last = Math.floor(to / step);
  const label = labeller(first * step, Math.max(Math.abs(from), to), step);
  return Array.from({ length: last - first + 1 }, (_, i) => {
    const ns = (first + i) * step;
    return { ns, label: label(ns) };
  });
}

function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  const factor = [1, 2, 5, 10].find(each => each * power >= least) ?? 10;
  return Math.max(factor * power, 1);
}

/** Labels are absolute; when zoomed in far from the start, all but the first are relative. */
function labeller(first: number, largest: number, step: number): (ns: number) => string {
  if (largest / step < 10 ** MOST_DIGITS) {
    return ns => inUnit(ns, largest, step);
  }
  return ns => (ns === first ? inUnit(ns, largest, step) : `+${inUnit(ns - first, step, step)}`);
}

function inUnit(ns: number, largest: number, step: number): string {
  if (ns === 0) {
    return '0';
  }
  const [unit, scale] = UNITS.find(([, each]) => largest >= each) ?? ['ns', 1];
  const digits = Math.max(0, Math.ceil(Math.log10(scale / step) - 1e-9));
  return `${(ns / scale).toFixed(digits).replace('-', '−')} ${unit}`;
}
