/** Reads untrusted data as a recording, with bounded work. */

import { BadRecording, checkSize, Fields, flag, list, listOf, oneOf, text, tuple, whole } from './fields.js';
import { NOT_MEASURED, parseMeasured } from './measured.js';
import * as old from './old.js';
import { readSiteFacts, SENTENCE } from './site.js';
import { SCHEMA, TONES, type Facts, type Measured, type Part } from '../schema.js';

export { BadRecording } from './fields.js';
export { NOT_MEASURED, parseMeasured } from './measured.js';
export { parseProgress } from './progress.js';

const MOST_SITES = 2_000;
const MOST_PARTS = 20;
const MOST_VALUES = 300_000; // in the sites that are shown: fewer variants than a call can name

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
    const { measured, sites } = parseMeasured(metadata, facts);
    const merged = facts.sites.map((site, place) => ({ ...site, ...sites[place] }));
    return { facts: { ...facts, sites: merged }, measured, problem: '' };
  } catch (error) {
    const problem = error instanceof BadRecording ? error.message : 'the data is malformed.';
    return { facts, measured: NOT_MEASURED, problem };
  }
}

/** Throws `BadRecording` if the data does not match `Facts`. */
export function parseFacts(data: unknown): ReadFacts {
  const facts = new Fields(data, '');
  const schema = facts.get('schema', whole());
  if (schema !== SCHEMA) {
    throw new BadRecording(
      `this recording has schema ${schema}; this version of jupyter_jaxcb shows schema ` +
        `${SCHEMA}. Update jupyter_jaxcb where JupyterLab runs.`
    );
  }
  const sites = facts.get('sites', list);
  const shown = sites.slice(0, MOST_SITES);
  checkSize(shown, MOST_VALUES, 'sites');
  return {
    schema,
    headline: facts.getOr('headline', [], listOf(readPart, MOST_PARTS)),
    sites: shown.map((site, place) => readSiteFacts(old.siteFacts(site), `sites[${place}]`)),
    overflow: facts.get('overflow', whole()),
    not_kept: facts.getOr('not_kept', 0, whole()),
    ahead: facts.get('ahead', flag),
    left_out: Math.max(0, sites.length - MOST_SITES)
  };
}

function readPart(value: unknown, path: string): Part {
  const [tone, words] = tuple(2)(value, path);
  return [oneOf(TONES)(tone, `${path}[0]`), text(SENTENCE)(words, `${path}[1]`)];
}
