/** Reads the data that changes from run to run; all of it may be missing. */

import {
  amount,
  bad,
  BadRecording,
  list,
  listOf,
  mapOf,
  objectOf,
  optional,
  or,
  orNull,
  text,
  time,
  whole,
  type Read
} from './fields.js';
import { LONG, NAME, OUT_OF_RANGE, SENTENCE } from './known.js';
import * as old from './old.js';
import { readProfile } from './profile.js';
import { readSiteMeasured, type SiteMeasured } from './site.js';

const MOST_COMPILATIONS = 1_000;
const MOST_LINES = 100;
const MOST_ENVIRONMENT = 20;
const MOST_COMPRESSED = 64_000_000; // characters

const texts = listOf(text(SENTENCE), MOST_LINES);

const readCompilation = objectOf({
  program: text(NAME),
  lower_ns: amount,
  compile_ns: amount,
  start_ns: or(orNull(time), null) // of lowering, since the first call; null: unknown
});
export interface Compilation extends Read<typeof readCompilation> {}

/**
 * Host calls as columns, little-endian, one after the other: start (u32, since the previous row),
 * duration (u32), element (i32), variant (u16), thread (u16), error (u16); times in `unit_ns`.
 *
 * `variant` is an index into the variants of all sites, concatenated; 0xffff: out of range.
 * `error` is 0, or 1 + an index into `Measured.errors`.
 * `crossings` (u32) are apart, because older versions did not save them; absent: every call has its
 * own crossing, or it is not known.
 * Saved columns are split into byte planes (all lowest bytes first), compressed by zlib, and
 * encoded in base64.
 */
const readSaved = objectOf({
  rows: whole(),
  unit_ns: amount,
  zlib: readCompressed,
  crossings: or(readCompressed, '')
});
export interface SavedCalls extends Read<typeof readSaved> {}

const readMeasured = objectOf({
  id: or(text(NAME), ''), // of the recording in a running kernel; empty: none
  environment: or(readEnvironment, {}),
  out_of_order: or(texts, []),
  by_worker: or(texts, []), // number of calls by each worker of an executor
  compilations: or(listOf(readCompilation, MOST_COMPILATIONS), []),
  threads: or(listOf(text(NAME), OUT_OF_RANGE), []),
  wall_ns: or(amount, 0), // how long the recorded code took; 0: unknown
  time: or(text(SENTENCE), ''), // "36 µs of 5.3 ms": in host functions, of the code; empty: nothing was called
  other_time: or(text(SENTENCE), ''), // where the time of the code went, if most of it went elsewhere
  errors: or(listOf(text(LONG), OUT_OF_RANGE), []),
  calls: or(orNull(readSaved), null), // null: sent separately, or there are none
  calls_not_saved: or(whole(), 0),
  profile: optional(readProfile) // only of a profiled block
});

/** What changes from run to run, apart from that about sites. */
export interface Measured extends Read<typeof readMeasured> {}

/** Used if the metadata was cleared: no times, no calls. */
export const NOT_MEASURED: Measured = readMeasured({}, '');

/** The metadata of an output; `sites` is complete, or empty if times were not saved. */
export interface ReadMeasured {
  readonly measured: Measured;
  readonly sites: readonly SiteMeasured[];
}

/** Throws `BadRecording` if the data does not match `Measured`; `lines` are those of the sites. */
export function parseMeasured(data: unknown, lines: readonly number[]): ReadMeasured {
  if (data === null || data === undefined) {
    return { measured: NOT_MEASURED, sites: [] };
  }
  const renewed = old.measured(data, lines);
  const { sites } = objectOf({ sites: or(perSite(lines.length), []) })(renewed, 'measured');
  return { measured: readMeasured(renewed, 'measured'), sites };
}

function perSite(count: number): (value: unknown, path: string) => readonly SiteMeasured[] {
  return (value, path) => {
    const { length } = list(value, path);
    if (length < count) {
      throw new BadRecording(`${path} has ${length} entries for ${count} sites.`);
    }
    return listOf(readSiteMeasured, count)(value, path);
  };
}

function readEnvironment(value: unknown, path: string): Readonly<Record<string, string>> {
  // fromEntries defines its keys, so "__proto__" is a key like any other.
  return Object.fromEntries(mapOf(text(SENTENCE), MOST_ENVIRONMENT)(value, path));
}

function readCompressed(value: unknown, path: string): string {
  if (typeof value !== 'string') {
    throw bad(path, value, 'text');
  }
  if (value.length > MOST_COMPRESSED) {
    throw new BadRecording(`${path} has ${value.length} characters, which is too many to unpack.`);
  }
  return value; // not cut, or it could not be unpacked
}
