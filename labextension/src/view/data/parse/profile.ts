/** Reads where the wall time of a profiled block went. */

import {
  amount,
  bad,
  BadRecording,
  checkSize,
  list,
  listOf,
  objectOf,
  oneOf,
  orNull,
  text,
  time,
  whole,
  type Read,
  type Reader
} from './fields.js';
import { NAME, PROFILE_KINDS, SENTENCE } from './known.js';

const MOST_VALUES = 600_000; // of which most are in the spans of the lanes
const MOST_PARTS = 2_000;
const MOST_LANES = 64;
const MOST_SENTENCES = 50;
const ROUNDING_NS = 1; // start and duration of a span are rounded separately

const sentences = listOf(text(SENTENCE), MOST_SENTENCES);

const readKind = objectOf({
  id: oneOf(PROFILE_KINDS),
  name: text(NAME), // "host functions"
  wall_ns: duration
});
export interface ProfileKind extends Read<typeof readKind> {}

const readPart = objectOf({
  kind: whole(), // index into `kinds`
  name: text(NAME), // "simulate", "dot_general", "jit_step", or "other"
  where: text(NAME), // "line 3", "model.py:12", or empty
  wall_ns: duration, // its share of the wall time; all shares add up to it
  busy_ns: duration, // summed over threads and devices
  count: whole() // of calls, operations or compilations; 0: not counted
});
export interface ProfilePart extends Read<typeof readPart> {}

const readParts = objectOf({
  wall_ns: duration,
  start_ns: orNull(time), // of the block, since the first call; null: no calls
  headline: text(SENTENCE), // "1.30 s: 82 % host functions, 12 % XLA, 3 % crossings, 3 % other"
  advice: sentences, // each with its figure
  notes: sentences, // the cost of profiling, what was left out
  kinds: atMost(PROFILE_KINDS.length, readKind), // in the order of the bar, without empty ones
  parts: atMost(MOST_PARTS, readPart) // by kind, longest first
});

/** A row of the timeline: flat triples, sorted, not overlapping: start, duration, part. */
export interface ProfileLane {
  readonly name: string;
  readonly spans: readonly number[];
}

/** Where the wall time of a profiled block went, as `report/frontend/_profile.py` writes it. */
export interface Profile extends Read<typeof readParts> {
  readonly lanes: readonly ProfileLane[]; // the block as the bar divides it, threads, devices
}

/** Throws `BadRecording` if the data does not match `Profile`. */
export function readProfile(value: unknown, path: string): Profile {
  checkSize([value], MOST_VALUES, path);
  const profile = readParts(value, path);
  const { kinds, parts, wall_ns } = profile;
  parts.forEach(({ kind }, place) => whole(0, kinds.length - 1)(kind, `${path}.parts[${place}].kind`));
  const spans: Reader<readonly number[]> = (found, at) => readSpans(found, at, parts.length, wall_ns);
  const lanes = listOf(objectOf({ name: text(NAME), spans }), MOST_LANES);
  return { ...profile, ...objectOf({ lanes })(value, path) };
}

/** A time of at least 0, with which the view can calculate. */
function duration(value: unknown, path: string): number {
  return time(amount(value, path), path);
}

/** Triples in the order of time, within the block. */
function readSpans(value: unknown, path: string, parts: number, wall: number): number[] {
  const spans = list(value, path);
  if (spans.length % 3) {
    throw new BadRecording(`${path} has ${spans.length} entries, which are not triples.`);
  }
  let end = 0;
  return spans.map((found, place) => {
    const where = `${path}[${place}]`;
    if (place % 3 === 2) {
      return whole(0, parts - 1)(found, where);
    }
    const read = amount(found, where);
    if (place % 3 === 0 && read < end - ROUNDING_NS) {
      throw bad(where, found, `a start after the span before it, which ends at ${end}`);
    }
    end = place % 3 === 0 ? read : end + read;
    if (end > wall + ROUNDING_NS) {
      throw bad(where, found, `within the block, which takes ${wall}`);
    }
    return read;
  });
}

/** A list that is not cut, because numbers elsewhere are indices into it. */
function atMost<T>(most: number, read: Reader<T>): Reader<readonly T[]> {
  return (value, path) => {
    const { length } = list(value, path);
    if (length > most) {
      throw new BadRecording(`${path} has ${length} entries, more than ${most}.`);
    }
    return listOf(read, most)(value, path);
  };
}
