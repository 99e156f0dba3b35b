/** Reads untrusted data as a recording, with bounded work. */

import {
  BadRecording,
  checkSize,
  flag,
  list,
  listOf,
  objectOf,
  oneOf,
  or,
  text,
  tupleOf,
  whole,
  type Read
} from './fields.js';
import { SCHEMA, SENTENCE, TONES } from './known.js';
import { NOT_MEASURED, parseMeasured, type Measured } from './measured.js';
import * as old from './old.js';
import { readSiteFacts, unmeasured, type Site } from './site.js';

export { BadRecording } from './fields.js';
export { NOT_MEASURED, parseMeasured } from './measured.js';
export { parseProgress } from './progress.js';

const MOST_SITES = 2_000;
const MOST_PARTS = 20;
const MOST_VALUES = 300_000; // in the sites that are shown: fewer variants than a call can name

/** One clause of the summary line: its tone and its text. */
export const readPart = tupleOf(oneOf(TONES), text(SENTENCE));
export type Part = Read<typeof readPart>;

const readFacts = objectOf({
  schema: readSchema,
  headline: or(listOf(readPart, MOST_PARTS), []), // worst first
  sites: readSites, // in program order
  overflow: or(whole(), 0), // host calls after the log was full, not in the counts
  not_kept: or(whole(), 0), // host calls in the counts but without a row
  ahead: or(flag, false) // nothing ran: `expected` is that of one run
});

/** What is the same for equal programs, and what is known about its sites. */
export interface Facts extends Read<typeof readFacts> {}

/** `Facts`, and the number of sites that were not read. */
export interface ReadFacts extends Facts {
  readonly left_out: number;
}

/** The checked data of an output. */
export interface Recording {
  readonly facts: ReadFacts;
  readonly measured: Measured;
  readonly problem: string; // why `measured` is empty, if it was malformed
}

/** Throws `BadRecording` if the facts cannot be read; without measurements these can be shown. */
export function parseRecording(data: unknown, metadata: unknown): Recording {
  const facts = parseFacts(data);
  try {
    const { measured, sites } = parseMeasured(metadata, facts.sites.map(site => site.line));
    facts.sites.forEach((site, place) => Object.assign(site, sites[place], old.figures(site, sites[place])));
    return { facts, measured, problem: '' };
  } catch (error) {
    const problem = error instanceof BadRecording ? error.message : 'the data is malformed.';
    return { facts, measured: NOT_MEASURED, problem };
  }
}

/** Throws `BadRecording` if the data does not match `Facts`. */
export function parseFacts(data: unknown): ReadFacts {
  const facts = readFacts(data, '');
  const sent = (data as { readonly sites: readonly unknown[] }).sites.length;
  return { ...facts, left_out: sent - facts.sites.length };
}

function readSchema(value: unknown, path: string): number {
  const schema = whole()(value, path);
  if (schema !== SCHEMA) {
    throw new BadRecording(
      `this recording has schema ${schema}; this version of jupyter_jaxcb shows schema ` +
        `${SCHEMA}. Update jupyter_jaxcb where JupyterLab runs.`
    );
  }
  return schema;
}

function readSites(value: unknown, path: string): readonly Site[] {
  const shown = list(value, path).slice(0, MOST_SITES);
  checkSize(shown, MOST_VALUES, path);
  return shown.map((one, place) => {
    const site = readSiteFacts(old.siteFacts(one), `${path}[${place}]`);
    return Object.assign(site, unmeasured(site.line)); // a copy takes as long as reading
  });
}
