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
import * as old from './old.js';
import { LONG, NAME, readSiteMeasured, SENTENCE } from './site.js';
import {
  OUT_OF_RANGE,
  type Compilation,
  type Facts,
  type Measured,
  type SavedCalls,
  type SiteMeasured
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
  calls: null,
  calls_not_saved: 0
};

/** The metadata of an output; `sites` is complete, or empty if times were not saved. */
export interface ReadMeasured {
  readonly measured: Measured;
  readonly sites: readonly SiteMeasured[];
}

/** Throws `BadRecording` if the data does not match `Measured`. */
export function parseMeasured(data: unknown, { sites }: Facts): ReadMeasured {
  if (data === null || data === undefined) {
    return { measured: NOT_MEASURED, sites: [] };
  }
  const measured = new Fields(old.measured(data, sites.length), 'measured');
  return {
    measured: readMeasured(measured),
    sites: measured.getOr('sites', [], perSite(sites.length))
  };
}

function readMeasured(measured: Fields): Measured {
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
    calls: measured.getOr('calls', null, orNull(readSaved)),
    calls_not_saved: measured.getOr('calls_not_saved', 0, whole()),
    profile: measured.getOr('profile', undefined, readProfile)
  };
}

function perSite(count: number): (value: unknown, path: string) => SiteMeasured[] {
  return (value, path) => {
    const { length } = list(value, path);
    if (length < count) {
      throw new BadRecording(`${path} has ${length} entries for ${count} sites.`);
    }
    return listOf(readSiteMeasured, count)(value, path);
  };
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
