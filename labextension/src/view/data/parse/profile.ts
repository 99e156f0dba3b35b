/** Reads where the wall time of a profiled block went. */

import {
  amount,
  bad,
  BadRecording,
  checkSize,
  Fields,
  list,
  listOf,
  oneOf,
  orNull,
  text,
  time,
  whole
} from './fields.js';
import { NAME, SENTENCE } from './site.js';
import {
  PROFILE_KINDS,
  type Profile,
  type ProfileKind,
  type ProfileLane,
  type ProfilePart
} from '../schema.js';

const MOST_VALUES = 600_000; // of which most are in the spans of the lanes
const MOST_PARTS = 2_000;
const MOST_LANES = 64;
const MOST_SENTENCES = 50;
const ROUNDING_NS = 1; // start and duration of a span are rounded separately

/** Throws `BadRecording` if the data does not match `Profile`. */
export function readProfile(value: unknown, path: string): Profile {
  checkSize([value], MOST_VALUES, path);
  const profile = new Fields(value, path);
  const sentences = listOf(text(SENTENCE), MOST_SENTENCES);
  const wall_ns = profile.get('wall_ns', duration);
  const kinds = profile.get('kinds', atMost(PROFILE_KINDS.length, readKind));
  const parts = profile.get('parts', atMost(MOST_PARTS, partOf(kinds.length)));
  return {
    wall_ns,
    start_ns: profile.get('start_ns', orNull(time)),
    headline: profile.get('headline', text(SENTENCE)),
    advice: profile.get('advice', sentences),
    notes: profile.get('notes', sentences),
    kinds,
    parts,
    lanes: profile.get('lanes', listOf(laneOf(parts.length, wall_ns), MOST_LANES))
  };
}

function readKind(value: unknown, path: string): ProfileKind {
  const kind = new Fields(value, path);
  return {
    id: kind.get('id', oneOf(PROFILE_KINDS)),
    name: kind.get('name', text(NAME)),
    wall_ns: kind.get('wall_ns', duration)
  };
}

function partOf(kinds: number): (value: unknown, path: string) => ProfilePart {
  return (value, path) => {
    const part = new Fields(value, path);
    return {
      kind: part.get('kind', whole(0, kinds - 1)),
      name: part.get('name', text(NAME)),
      where: part.get('where', text(NAME)),
      wall_ns: part.get('wall_ns', duration),
      busy_ns: part.get('busy_ns', duration),
      count: part.get('count', whole())
    };
  };
}

function laneOf(parts: number, wall: number): (value: unknown, path: string) => ProfileLane {
  return (value, path) => {
    const lane = new Fields(value, path);
    return {
      name: lane.get('name', text(NAME)),
      spans: lane.get('spans', (spans, where) => readSpans(spans, where, parts, wall))
    };
  };
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
function atMost<T>(
  most: number,
  read: (value: unknown, path: string) => T
): (value: unknown, path: string) => T[] {
  return (value, path) => {
    const { length } = list(value, path);
    if (length > most) {
      throw new BadRecording(`${path} has ${length} entries, more than ${most}.`);
    }
    return listOf(read, most)(value, path);
  };
}
