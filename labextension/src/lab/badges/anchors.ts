/** Tracks the lines of an executed source through edits. */

import { ChangeSet, MapMode, type ChangeDesc, type Text } from '@codemirror/state';
import { crc32 } from './crc32.js';

/** The executed source, and the changes made since. */
export interface Origin {
  readonly crc: number;
  readonly doc: Text;
  readonly since: ChangeDesc;
}

/** The origin of `doc`, if its CRC-32 is `crc`. */
export function originAt(doc: Text, crc: number | null): Origin | null {
  const same = crc !== null && crc32(doc.toString()) === crc;
  return same ? { crc, doc, since: ChangeSet.empty(doc.length).desc } : null;
}

/** The same origin, after more changes. */
export function edited(origin: Origin, changes: ChangeDesc): Origin {
  return { ...origin, since: origin.since.composeDesc(changes) };
}

/**
 * The end of a line of the origin in `doc`; null if the line is gone.
 *
 * Without an origin, or if a formatter replaced the whole source, the nearest line with the text
 * `source` is used; if `source` is unknown, the line with that number. To find several lines, pass
 * the same `nearest`.
 */
export function lineEnd(
  origin: Origin | null,
  doc: Text,
  line: number,
  source: string,
  nearest = nearestIn(doc)
): number | null {
  const mapped = origin && mappedEnd(origin, line);
  return mapped ?? (source ? nearest(line, source) : endOfSame(origin, doc, line));
}

/**
 * Finds the end of the line nearest to a number that has a text.
 *
 * It reads `doc` once, however many lines are searched: badges do so for each key.
 */
export function nearestIn(doc: Text): (line: number, source: string) => number | null {
  let read: ReadonlyMap<string, readonly number[]> | null = null;
  return (line, source) => {
    read ??= numbersByText(doc);
    const [first, ...more] = read.get(source) ?? [];
    const closer = (one: number, other: number): number =>
      Math.abs(other - line) < Math.abs(one - line) ? other : one;
    return first === undefined ? null : doc.line(more.reduce(closer, first)).to;
  };
}

/** As `lineEnd`, but only if that line of the origin reads `source` and still exists. */
export function trackedEnd(origin: Origin, line: number, source: string): number | null {
  const exists = line >= 1 && line <= origin.doc.lines;
  const same = exists && (source === '' || origin.doc.line(line).text.trim() === source);
  return same ? mappedEnd(origin, line) : null;
}

function mappedEnd(origin: Origin, line: number): number | null {
  if (line < 1 || line > origin.doc.lines) {
    return null;
  }
  const { from, to } = origin.doc.line(line);
  const start = origin.since.mapPos(from, 1, MapMode.TrackDel);
  const end = origin.since.mapPos(to, -1, MapMode.TrackDel);
  return start === null || end === null || (start >= end && from < to) ? null : end;
}

function numbersByText(doc: Text): Map<string, number[]> {
  const found = new Map<string, number[]>();
  let number = 0;
  for (const line of doc.iterLines()) {
    number += 1;
    const text = line.trim();
    const numbers = found.get(text);
    if (numbers) {
      numbers.push(number);
    } else {
      found.set(text, [number]);
    }
  }
  return found;
}

function endOfSame(origin: Origin | null, doc: Text, line: number): number | null {
  return origin === null && line >= 1 && line <= doc.lines ? doc.line(line).to : null;
}
