/** Reads a call site, as `SiteView` in Python writes it and `view.schema.json` describes it. */

import {
  amount,
  bad,
  BadRecording,
  flag,
  list,
  listOf,
  objectOf,
  oneOf,
  optional,
  or,
  orNull,
  text,
  tupleOf,
  whole,
  type Read
} from './fields.js';
import {
  AXIS_KINDS,
  CONSEQUENCES,
  LONG,
  NAME,
  OUT_OF_RANGE,
  SENTENCE,
  STATUSES
} from './known.js';

const MOST_OPERANDS = 1_000;
const MOST_AXES = 64;
const MOST_LEVELS = 32;
const MOST_LINES = 100; // notes, errors and sample values of one site
const MOST_RUNS = 20_000;

const sentences = listOf(text(SENTENCE), MOST_LINES);
const names = listOf(text(NAME), MOST_LINES);
const argumentNames = listOf(text(NAME), MOST_OPERANDS);

/** Shape and dtype of one array. */
const readAval = tupleOf(readShape, text(NAME));
export type Aval = Read<typeof readAval>;

/** What one `vmap` did: its size, its method, and which operands it maps over. */
const readLevel = tupleOf(whole(), text(NAME), listOf(flag, MOST_OPERANDS));
export type Level = Read<typeof readLevel>;

/** What one `vmap` did to the arrays of a host call. */
const readAxes = objectOf({
  operands: listOf(oneOf(AXIS_KINDS), MOST_OPERANDS),
  results: oneOf(AXIS_KINDS),
  mask: optional(oneOf(AXIS_KINDS)) // only of masked calls
});
export type Axes = Read<typeof readAxes>;

/** The mask: over which vmaps it is mapped, innermost first; needed batch elements, of how many. */
const readMask = tupleOf(listOf(flag, MOST_LEVELS), whole(), whole());
export type Mask = Read<typeof readMask>;

/** At which batch element calls stopped first, because the host function raised; how many times. */
const readStopped = tupleOf(whole(), whole());
export type Stopped = Read<typeof readStopped>;

const readParts = objectOf({
  operands: or(listOf(readAval, MOST_OPERANDS), []), // as one host call sees them
  results: or(listOf(readAval, MOST_OPERANDS), []),
  operand_names: or(argumentNames, []), // "x", "params['w']"; empty: unknown
  result_names: or(argumentNames, []),
  levels: or(listOf(readLevel, MOST_LEVELS), []), // innermost vmap first
  axes: or(listOf(readAxes, MOST_LEVELS), []), // by level
  calls: or(whole(), 0),
  shards: or(whole(), 0), // 0: one call for all devices
  devices: or(names, []),
  gathered_bytes: or(amount, 0),
  mask: optional(readMask), // only of masked calls
  stopped: optional(readStopped) // only if the host function raised
});

/** One variant of a call site: a combination of shapes and vmap levels. */
export interface Variant extends Read<typeof readParts> {}

/** Abbreviated values of one host call: batch element (-1: none), arguments, results, failed, shard. */
const readSample = tupleOf(whole(-1), sentences, sentences, flag, orNull(whole()));
export type SampleValues = Read<typeof readSample>;

/** An array: its sample, its place among arguments and results, range, NaN, infinite, picture. */
const readArray = tupleOf(
  whole(),
  whole(),
  text(NAME),
  text(NAME),
  whole(),
  whole(),
  text(SENTENCE)
);
export type ArrayValues = Read<typeof readArray>;

/** An option of a callback that advice proposes, as in code; what to say; options that exclude it. */
const readProposal = tupleOf(text(NAME), text(SENTENCE), names);
export type Proposal = Read<typeof readProposal>;

/** A fact in words; whether badges and the panel say it, too, where there is little room. */
const readFigure = tupleOf(text(NAME), flag);

// A saved output leaves out what has the default of the schema.
const FACTS = {
  function: text(NAME),
  flavor: text(NAME),
  where: text(NAME), // "line 3", "line 3, another cell", "model.py:12", "a program compiled earlier"
  line: whole(), // 1-based; 0: unknown
  column: or(whole(), 0), // 0-based
  cell: or(flag, true), // in a notebook cell, not in a file
  source: or(text(SENTENCE), ''), // the line, stripped
  status: or(oneOf(STATUSES), 'kept'),
  consequence: or(oneOf(CONSEQUENCES), 'kept'),
  word: or(text(SENTENCE), ''), // what became of its calls; empty: the word of the consequence
  reason: or(text(SENTENCE), ''), // empty when its calls are simply kept
  advice: or(text(SENTENCE), ''),
  calls: or(whole(), 0),
  crossings: or(whole(), 0),
  expected: or(orNull(whole()), null), // calls of the recorded runs, as compiled; null: unknown
  written: or(orNull(whole()), null), // calls of the recorded runs in the program text
  elided: or(whole(), 0), // outcomes with an elided status
  batch_calls: or(whole(), 0), // that vmap_method='expand_dims' would make; 0: not many fewer
  notes: or(sentences, []),
  errors: or(listOf(text(LONG), MOST_LINES), []),
  shapes: or(listOf(readVariant, OUT_OF_RANGE), []),
  sample_values: or(listOf(readSample, MOST_LINES), []), // empty unless requested
  sample_arrays: or(listOf(readArray, MOST_RUNS), []) // of these, of more than six elements
};

const MEASURED = {
  host_ns: or(orNull(amount), null), // in the host function, summed over calls; null: it was not saved
  wall_ns: or(amount, 0), // of crossings whose calls ran in workers of an executor; 0: not all did
  variants_ns: or(listOf(amount, OUT_OF_RANGE), []), // the same by variant
  figures: or(listOf(readFigure, MOST_LINES), []), // said beside the number of calls
  cell_id: or(orNull(text(NAME)), null), // of its notebook cell; null: a file or an unknown cell
  cell_line: whole(), // in that cell, 1-based; 0: unknown
  numbered: or(text(NAME), ''), // `where` with the numbers of other cells: "[21] line 3"; empty: the same
  around: or(names, []), // "scan of 5", outermost first
  stack: or(names, []), // the same with transformations
  proposals: or(listOf(readProposal, MOST_LINES), []), // that need times
  sample_rows: or(listOf(whole(-1), MOST_LINES), []), // by sample: its call, or -1
  // Calls that returned NaN or infinity: how many to skip, how many follow, how many to skip, ...
  not_finite_rows: or(listOf(whole(), MOST_RUNS), []), // for finite arguments
  passed_on_rows: or(listOf(whole(), MOST_RUNS), []), // for others
  first_element: or(whole(-1), -1) // of the batch, in the first of `not_finite_rows`; -1: none
};

/** What the data of an output says about a site. */
export const readSiteFacts = objectOf(FACTS);

/** What its metadata says about the site. */
export const readSiteMeasured = objectOf(MEASURED);
export interface SiteMeasured extends Read<typeof readSiteMeasured> {}

/** Everything about a site, as the kernel sends it; of a running cell it has less in it. */
export const readSite = objectOf({ ...FACTS, ...MEASURED });

/** A call site: a line of user code that binds a callback. */
export interface Site extends Read<typeof readSite> {}

/** What is known about a site of `line` without metadata, or with that of an earlier version. */
export function unmeasured(line: number): SiteMeasured {
  return readSiteMeasured({ cell_line: line }, '');
}

function readVariant(value: unknown, path: string): Variant {
  const variant = readParts(value, path);
  const { axes, levels } = variant;
  const fits = levels.every(([, , flags], place) => axes[place]?.operands.length === flags.length);
  if (!fits || axes.length !== levels.length) {
    throw new BadRecording(`${path}.axes do not fit its vmaps.`);
  }
  return variant;
}

function readShape(value: unknown, path: string): readonly number[] {
  if (list(value, path).length > MOST_AXES) {
    throw bad(path, value, `a shape of at most ${MOST_AXES} axes`);
  }
  return listOf(whole(), MOST_AXES)(value, path);
}
