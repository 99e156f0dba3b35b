/** Calls that returned NaN or infinity. */

import phrases from './phrases.json';

const MOST_ROWS = 100_000;

/** Calls that returned NaN or infinity, by row: whether their arguments had some already. */
export type NotFinite = ReadonlyMap<number, boolean>;
// Elements, and the counts behind an array of which only the first ones are listed.
const NOT_FINITE =
  /(?<![\w.])[-+]?(?:nan|inf)j?(?!\w)|[-+]?(?:nan|inf)j(?!\w)|[\d,]+ (?:NaN|infinite)(?=[,)])/g;

/** The rows of alternating numbers of rows to skip and rows that follow. */
export function rowsIn(runs: readonly number[]): number[] {
  const rows: number[] = [];
  let next = 0;
  for (let place = 0; place + 1 < runs.length && rows.length < MOST_ROWS; place += 2) {
    next += runs[place]!;
    const end = next + Math.min(runs[place + 1]!, MOST_ROWS);
    for (; next < end; next++) {
      rows.push(next);
    }
  }
  return rows;
}

/** `returned NaN or infinity for finite arguments`; empty: the call did not, or it is unknown. */
export function notFiniteWords(notFinite: NotFinite, row: number): string {
  const passed = notFinite.get(row);
  return passed === undefined ? '' : passed ? phrases.of_not_finite : phrases.of_finite;
}

/** The first call that returned NaN or infinity, preferably for finite arguments; null: none. */
export function firstNotFinite(notFinite: NotFinite): number | null {
  let first: number | null = null;
  let passed: number | null = null;
  for (const [row, wasPassed] of notFinite) {
    if (wasPassed) {
      passed = Math.min(row, passed ?? row);
    } else {
      first = Math.min(row, first ?? row);
    }
  }
  return first ?? passed;
}

/** A text in parts, of which every second is `nan` or `inf`, as in `[0, nan, …]`. */
export function notFiniteParts(text: string): string[] {
  const parts: string[] = [];
  let end = 0;
  for (const found of text.matchAll(NOT_FINITE)) {
    parts.push(text.slice(end, found.index), found[0]);
    end = found.index + found[0].length;
  }
  return [...parts, text.slice(end)];
}
