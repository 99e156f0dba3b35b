/** The notes in the badges of one cell, by line. */

import type { Site, Tone, Variant } from '../../view/data/schema.js';
import { elidedWords, joined, placeIn, siteSign, siteTone } from '../../view/data/words.js';
import type { Callback, Snapshot, Value } from '../kernel/snapshot.js';
import { callbackBrief, drawnVariant, siteBrief, siteDetails } from '../words.js';
import phrases from '../../view/data/phrases.json';

/** A place in the snapshot that the panel can show. */
export type Place = { readonly site: number } | { readonly callback: number };

/** One site, callback or value at the end of its line. */
export interface Note {
  readonly tone: Tone;
  readonly sign: string; // may be empty
  readonly text: string;
  readonly filled?: boolean; // the first bad value
  readonly name: string; // of the function
  readonly title: string; // "bessel, line 3"
  readonly details: readonly string[];
  readonly vmap: Variant | null; // the shapes to draw in the tooltip
  readonly place: Place | null; // null: not in the panel
}

/** The notes of one line of the executed source. */
export interface LineNotes {
  readonly line: number; // 1-based
  readonly source: string; // the line, stripped; empty: unknown
  readonly notes: readonly Note[];
}

export interface CellNotes {
  readonly crc: number | null; // of the source when it ran
  readonly saved: boolean; // not of this kernel, but of the outputs of the notebook
  readonly lines: readonly LineNotes[];
}

/** The notes of a cell; null if the snapshot does not mention the cell. */
export function notesOf(snapshot: Snapshot, cell: string): CellNotes | null {
  const lines = new Map<number, { line: number; source: string; notes: Note[] }>();
  const add = (line: number, source: string, note: Note): void => {
    const found = lines.get(line) ?? { line, source, notes: [] };
    found.source ||= source;
    found.notes.push(note);
    lines.set(line, found);
  };
  snapshot.callbacks.forEach((callback, place) => {
    if (callback.cell === cell) {
      add(callback.line, '', callbackNote(callback, place));
    }
  });
  snapshot.sites.forEach((site, place) => {
    if (site.cell_id === cell) {
      add(site.cell_line, site.source, siteNote(site, place));
    }
  });
  for (const value of snapshot.values.filter(each => each.cell === cell)) {
    add(value.line, value.source, valueNote(value));
  }
  if (!lines.size) {
    return null;
  }
  const withNames = [...lines.values()].map(line => ({ ...line, notes: named(line.notes) }));
  return { crc: snapshot.cells[cell] ?? null, saved: !snapshot.version, lines: withNames };
}

const LONGEST_NAME = 20; // on a line with several functions; the tooltip has the whole name

// On a line with several functions, each note begins with its function.
function named(notes: readonly Note[]): readonly Note[] {
  const ours = notes.filter(note => note.place);
  const same = new Set(ours.map(note => note.name)).size <= 1;
  const text = (note: Note): string => (note.place ? `${brief(note.name)}: ${note.text}` : note.text);
  return same ? notes : notes.map(note => ({ ...note, text: text(note) }));
}

/** A name without its middle, if it would leave no room for what happened. */
function brief(name: string): string {
  return name.length > LONGEST_NAME ? `${name.slice(0, 12)}…${name.slice(-7)}` : name;
}

function valueNote({ name, text, bad, first: filled, details }: Value): Note {
  const tone = bad ? 'error' : 'quiet';
  return { tone, sign: '', text, filled, name, title: name, details, vmap: null, place: null };
}

function siteNote(site: Site, place: number): Note {
  return {
    tone: siteTone(site),
    sign: siteSign(site),
    text: siteBrief(site),
    name: site.function,
    title: joined([site.function, placeIn('', site.where)]), // here, it is this cell
    details: siteDetails(site),
    vmap: drawnVariant(site),
    place: { site: place }
  };
}

function callbackNote(callback: Callback, place: number): Note {
  return {
    tone: callback.errors > 0 ? 'error' : 'quiet',
    sign: callback.errors > 0 ? phrases.signs.raised : '',
    text: callbackBrief(callback),
    name: callback.name,
    title: joined([callback.name, callback.where]),
    details: [joined([callbackBrief(callback), elidedWords(callback)]), callback.options].filter(Boolean),
    vmap: null,
    place: { callback: place }
  };
}
