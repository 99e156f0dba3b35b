/** Reads the data that changes from run to run; all of it may be missing. */

import {
  amount,
  bad,
  BadRecording,
  Fields,
  list,
  listOf,
  orNull,
  text,
  time,
  whole
} from './fields.js';
import { readProfile } from './profile.js';
import { LONG, NAME, SENTENCE } from './site.js';
import {
  OUT_OF_RANGE,
  type Compilation,
  type Facts,
  type Measured,
  type SavedCalls
} from '../schema.js';

const MOST_COMPILATIONS = 1_000;
const MOST_LINES = 100;
const MOST_ENVIRONMENT = 20;
const MOST_COMPRESSED = 64_000_000; // characters

/** Used if the metadata was cleared: no times, no calls. */
export const NOT_MEASURED: Measured = {
  id: '',
  environment: {},
  out_of_order: [],
  by_worker: [],
  compilations: [],
  threads: [],
  errors: [],
  host_ns: [],
  variants_ns: [],
  cells: [],
  lines: [],
  around: [],
  sample_rows: [],
  calls: null,
  calls_not_saved: 0
};

/**
 * Throws `BadRecording` if the data does not match `Measured`.
 *
 * A list by site is complete, or empty if it was not saved.
 */
export function parseMeasured(data: unknown, facts: Facts): Measured {
  if (data === null || data === undefined) {
    return NOT_MEASURED;
  }
  const measured = new Fields(data, 'measured');
  const bySite = <T>(name: string, read: (value: unknown, path: string) => T): T[] =>
    measured.getOr(name, [], (value, path) => perSite(value, path, facts, read));
  const texts = listOf(text(SENTENCE), MOST_LINES);
  return {
    id: measured.getOr('id', '', text(NAME)),
    environment: measured.getOr('environment', {}, readEnvironment),
    out_of_order: measured.getOr('out_of_order', [], texts),
    by_worker: measured.getOr('by_worker', [], texts),
    compilations: measured.getOr(
      'compilations',
      [],
      listOf(readCompilation, MOST_COMPILATIONS)
    ),
    threads: measured.getOr('threads', [], listOf(text(NAME), OUT_OF_RANGE)),
    errors: measured.getOr('errors', [], listOf(text(LONG), OUT_OF_RANGE)),
    host_ns: bySite('host_ns', amount),
    variants_ns: bySite('variants_ns', listOf(amount, OUT_OF_RANGE)),
    cells: bySite('cells', orNull(text(NAME))),
    lines: bySite('lines', whole()),
    around: bySite('around', listOf(text(NAME), MOST_LINES)),
    sample_rows: bySite('sample_rows', listOf(whole(-1), MOST_LINES)),
    calls: measured.getOr('calls', null, orNull(readSaved)),
    calls_not_saved: measured.getOr('calls_not_saved', 0, whole()),
    profile: measured.getOr('profile', undefined, readProfile)
  };
}

function perSite<T>(
  value: unknown,
  path: string,
  facts: Facts,
  read: (value: unknown, path: string) => T
): T[] {
  const length = list(value, path).length;
  if (length > 0 && length < facts.sites.length) {
    throw new BadRecording(`${path} has ${length} entries for ${facts.sites.length} sites.`);
  }
  return listOf(read, facts.sites.length)(value, path);
}

function readEnvironment(value: unknown, path: string): Record<string, string> {
  const fields = new Fields(value, path);
  const names = Object.keys(value as object).slice(0, MOST_ENVIRONMENT);
  // fromEntries defines its keys, so "__proto__" is a key like any other.
  return Object.fromEntries(names.map(name => [name, fields.get(name, text(NAME))]));
}

function readCompilation(value: unknown, path: string): Compilation {
  const compilation = new Fields(value, path);
  return {
    program: compilation.get('program', text(NAME)),
    lower_ns: compilation.get('lower_ns', amount),
    compile_ns: compilation.get('compile_ns', amount),
    start_ns: compilation.getOr('start_ns', null, orNull(time))
  };
}

function readSaved(value: unknown, path: string): SavedCalls {
  const saved = new Fields(value, path);
  return {
    rows: saved.get('rows', whole()),
    unit_ns: saved.get('unit_ns', amount),
    zlib: saved.get('zlib', readCompressed)
  };
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
