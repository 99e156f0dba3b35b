/** Reads a call site. */

import {
  amount,
  bad,
  Fields,
  flag,
  list,
  listOf,
  oneOf,
  orNull,
  text,
  tuple,
  whole
} from './fields.js';
import { checked, readAxes } from './axes.js';
import {
  CONSEQUENCES,
  OUT_OF_RANGE,
  STATUSES,
  type Aval,
  type Mask,
  type Stopped,
  type Level,
  type SampleValues,
  type Site,
  type SiteMeasured,
  type Variant
} from '../schema.js';

export const NAME = 200;
export const SENTENCE = 1_000;
export const LONG = 10_000; // an error with its traceback
const MOST_OPERANDS = 1_000;
const MOST_AXES = 64;
const MOST_LEVELS = 32;
const MOST_LINES = 100; // notes, errors and sample values of one site
const NO_ELEMENT = -1;

/** Reads everything about a site, as the kernel sends it. */
export function readSite(value: unknown, path: string): Site {
  return { ...readSiteFacts(value, path), ...readSiteMeasured(value, path) };
}

/** Reads what the metadata of an output says about a site. */
export function readSiteMeasured(value: unknown, path: string): SiteMeasured {
  const site = new Fields(value, path);
  return {
    host_ns: site.get('host_ns', amount),
    variants_ns: site.get('variants_ns', listOf(amount, OUT_OF_RANGE)),
    cell_id: site.get('cell_id', orNull(text(NAME))),
    cell_line: site.get('cell_line', whole()),
    around: site.get('around', listOf(text(NAME), MOST_LINES)),
    stack: site.get('stack', listOf(text(NAME), MOST_LINES)),
    sample_rows: site.get('sample_rows', listOf(whole(-1), MOST_LINES))
  };
}

/** Reads what the data of an output says about a site, as one without measurements. */
export function readSiteFacts(value: unknown, path: string): Site {
  const site = new Fields(value, path);
  const line = site.get('line', whole());
  return {
    ...{ host_ns: null, variants_ns: [], around: [], stack: [], sample_rows: [] },
    ...{ cell_id: null, cell_line: line },
    function: site.get('function', text(NAME)),
    flavor: site.get('flavor', text(NAME)),
    where: site.get('where', text(NAME)),
    line,
    column: site.get('column', whole()),
    cell: site.get('cell', flag),
    source: site.get('source', text(SENTENCE)),
    status: site.get('status', oneOf(STATUSES)),
    consequence: site.get('consequence', oneOf(CONSEQUENCES)),
    reason: site.get('reason', text(SENTENCE)),
    advice: site.get('advice', text(SENTENCE)),
    calls: site.get('calls', whole()),
    crossings: site.get('crossings', whole()),
    expected: site.get('expected', orNull(whole())),
    written: site.get('written', orNull(whole())),
    elided: site.get('elided', whole()),
    notes: site.get('notes', listOf(text(SENTENCE), MOST_LINES)),
    errors: site.get('errors', listOf(text(LONG), MOST_LINES)),
    shapes: site.get('shapes', listOf(readVariant, OUT_OF_RANGE)),
    sample_values: site.get('sample_values', listOf(readSample, MOST_LINES))
  };
}

/** Reads a variant of a call site. */
export function readVariant(value: unknown, path: string): Variant {
  const variant = new Fields(value, path);
  const levels = variant.get('levels', listOf(readLevel, MOST_LEVELS));
  const axes = variant.get('axes', listOf(readAxes(MOST_OPERANDS), MOST_LEVELS));
  return {
    operands: variant.get('operands', listOf(readAval, MOST_OPERANDS)),
    results: variant.get('results', listOf(readAval, MOST_OPERANDS)),
    operand_names: variant.get('operand_names', listOf(text(NAME), MOST_OPERANDS)),
    result_names: variant.get('result_names', listOf(text(NAME), MOST_OPERANDS)),
    levels,
    axes: checked(axes, levels, path),
    calls: variant.get('calls', whole()),
    shards: variant.get('shards', whole()),
    devices: variant.get('devices', listOf(text(NAME), MOST_LINES)),
    gathered_bytes: variant.get('gathered_bytes', amount),
    mask: variant.getOr('mask', undefined, readMask),
    stopped: variant.getOr('stopped', undefined, readStopped)
  };
}

function readStopped(value: unknown, path: string): Stopped {
  const [element, times] = tuple(2)(value, path);
  return [whole()(element, `${path}[0]`), whole()(times, `${path}[1]`)];
}

function readMask(value: unknown, path: string): Mask {
  const [batched, needed, elements] = tuple(3)(value, path);
  return [
    listOf(flag, MOST_LEVELS)(batched, `${path}[0]`),
    whole()(needed, `${path}[1]`),
    whole()(elements, `${path}[2]`)
  ];
}

function readAval(value: unknown, path: string): Aval {
  const [shape, dtype] = tuple(2)(value, path);
  if (list(shape, `${path}[0]`).length > MOST_AXES) {
    throw bad(`${path}[0]`, shape, `a shape of at most ${MOST_AXES} axes`);
  }
  return [listOf(whole(), MOST_AXES)(shape, `${path}[0]`), text(NAME)(dtype, `${path}[1]`)];
}

function readLevel(value: unknown, path: string): Level {
  const [size, method, batched] = tuple(3)(value, path);
  return [
    whole()(size, `${path}[0]`),
    text(NAME)(method, `${path}[1]`),
    listOf(flag, MOST_OPERANDS)(batched, `${path}[2]`)
  ];
}

function readSample(value: unknown, path: string): SampleValues {
  const [element, operands, results, failed, shard] = tuple(5)(value, path);
  return [
    whole(NO_ELEMENT)(element, `${path}[0]`),
    listOf(text(SENTENCE), MOST_LINES)(operands, `${path}[1]`),
    listOf(text(SENTENCE), MOST_LINES)(results, `${path}[2]`),
    flag(failed, `${path}[3]`),
    orNull(whole())(shard, `${path}[4]`)
  ];
}
