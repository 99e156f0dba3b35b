/** Reads the data of an output, which may be anything, as a recording. */

import { conform, isObject, mismatch } from './conform.js';
import documents from './documents.json';
import { SCHEMA, type Facts, type Measured, type Profile } from '../schema.js';

const MOST_SITES = documents.Facts.properties.sites.most;
const ROUNDING_NS = 1; // start and duration of a span are rounded separately

/** A recording cannot be shown; the message says why, in one sentence. */
export class BadRecording extends Error {}

/** `Facts`, and the number of sites that were not read. */
export interface ReadFacts extends Facts {
  readonly left_out: number;
}

/** The checked data of an output; its sites have what the metadata says about them. */
export interface Recording {
  readonly facts: ReadFacts;
  readonly measured: Measured;
  readonly damage: string; // what cannot be shown as it was, in one sentence; usually empty
}

/** Throws `BadRecording` if `data` is no recording; what else is wrong is named, and left out. */
export function parseRecording(data: unknown, metadata: unknown): Recording {
  if (!isObject(data)) {
    throw new BadRecording(mismatch('the recording', data, 'an object'));
  }
  checkSchema(data['schema']);
  const [measured, wrong] = conform('Measured', metadata ?? {}, 'measured');
  const sent = data['sites'];
  const merged = Array.isArray(sent) ? sent.slice(0, MOST_SITES).map(merge(measured.sites)) : sent;
  const [facts, damage] = conform('Facts', { ...data, sites: merged });
  const profile = measured.profile && !fitsTogether(measured.profile);
  const broken = profile ? 'the parts of measured.profile do not fit together.' : '';
  return {
    facts: { ...facts, left_out: Array.isArray(sent) ? sent.length - facts.sites.length : 0 },
    measured: profile ? { ...measured, profile: undefined } : measured,
    damage: damage || wrong || broken
  };
}

function checkSchema(schema: unknown): void {
  if (typeof schema === 'number' && schema > SCHEMA) {
    throw new BadRecording(
      `it was made by a newer version of jupyter_jaxcb (schema ${schema}; this one shows schema ` +
        `${SCHEMA}). Update jupyter_jaxcb where JupyterLab runs.`
    );
  }
  if (schema !== SCHEMA) {
    throw new BadRecording(mismatch('schema', schema, String(SCHEMA)));
  }
}

/** Joins what the data and what the metadata say about a site; without metadata, its line is that of its file. */
function merge(measured: readonly unknown[]): (site: unknown, place: number) => unknown {
  return (site, place) => {
    const more = measured[place];
    return isObject(site) ? { cell_line: site['line'], ...site, ...(isObject(more) && more) } : site;
  };
}

/** Whether every part has a kind, and the spans are of parts, in order, and within the block. */
function fitsTogether({ kinds, parts, lanes, wall_ns }: Profile): boolean {
  return (
    parts.every(({ kind }) => kind < kinds.length) &&
    lanes.every(({ spans }) => {
      let end = 0;
      for (let at = 0; at < spans.length; at += 3) {
        const [start = NaN, duration = NaN, part = NaN] = [spans[at], spans[at + 1], spans[at + 2]];
        if (!(start >= end - ROUNDING_NS && part < parts.length)) {
          return false;
        }
        end = start + duration;
      }
      return end <= wall_ns + ROUNDING_NS;
    })
  );
}
