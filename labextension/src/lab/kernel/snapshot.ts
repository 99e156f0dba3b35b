/** Reads a kernel's messages about its callbacks: untrusted data, so every field is checked. */

import {
  BadRecording,
  Fields,
  flag,
  list,
  listOf,
  objectOf,
  oneOf,
  orNull,
  text,
  whole,
  type Read,
  type Reader
} from '../../view/data/parse/fields.js';
import { readSite } from '../../view/data/parse/site.js';
import { NAME, SCHEMA, SENTENCE, type Site } from '../../view/data/schema.js';
import type { RawCalls } from '../../view/view.js';

const MOST_ENTRIES = 500; // of a list; a kernel sends no more sites

export const readCallback = objectOf({
  name: text(NAME),
  flavor: text(NAME),
  options: text(SENTENCE),
  cell: orNull(text(NAME)), // JupyterLab's id of the cell; null: a file or an unknown cell
  line: whole(),
  where: text(NAME), // may be empty
  sites: listOf(whole(), MOST_ENTRIES), // indices
  calls: whole(),
  elided: whole(),
  errors: whole(),
  host_ns: whole()
});

/** A registered callback, with the totals of its sites. */
export interface Callback extends Read<typeof readCallback> {}

const readValue = objectOf({
  cell: text(NAME),
  line: whole(),
  source: text(SENTENCE),
  name: text(NAME),
  text: text(NAME), // `loss 0.31 → 0.02`
  bad: flag, // NaN or infinite
  details: listOf(text(NAME), 8)
});

/** What a variable was in a watched cell. */
export interface Value extends Read<typeof readValue> {}

/** Indices of the sites, callbacks and values in one cell. */
export interface CellPlaces {
  readonly sites: readonly number[];
  readonly callbacks: readonly number[];
  readonly values: readonly number[];
}

export interface Snapshot {
  readonly version: string;
  readonly running: boolean;
  readonly callbacks: readonly Callback[];
  readonly sites: readonly Site[];
  readonly values: readonly Value[];
  readonly more_sites: number; // that are not in `sites`
  readonly crcs: ReadonlyMap<string, number>; // by cell: of its executed source
  readonly byCell: ReadonlyMap<string, CellPlaces>;
}

/** The reply to a request for a recording. */
export interface Reply {
  readonly id: string;
  readonly facts: unknown; // null: the kernel no longer has it
  readonly measured: unknown;
  readonly calls: RawCalls | null;
  readonly runs: unknown; // of its cell, up to this one; null: unknown
}

export type Message =
  | { readonly type: 'snapshot'; readonly snapshot: Snapshot }
  | { readonly type: 'unloaded' }
  | { readonly type: 'recording'; readonly reply: Reply }
  | { readonly type: 'trouble'; readonly text: string };

type Bytes = ArrayBuffer | ArrayBufferView;

/** Reads a message of the kernel; returns `trouble`, with a text for the user, if it is malformed. */
export function readMessage(data: unknown, buffers: readonly Bytes[] = []): Message {
  try {
    return read(data, buffers);
  } catch (error) {
    if (!(error instanceof BadRecording)) {
      throw error;
    }
    const words = `sent what this JupyterLab extension cannot read: ${error.message}`;
    return { type: 'trouble', text: `${sender(data)}, which ${words} ${SAME}` };
  }
}

const SAME = 'Install the same version in both environments.';

function read(data: unknown, buffers: readonly Bytes[]): Message {
  const message = new Fields(data, '');
  if (message.get('type', anything) === 'recording') {
    return { type: 'recording', reply: readReply(message, buffers) };
  }
  const schema = message.getOr('schema', null, orNull(whole()));
  if (schema !== SCHEMA) {
    const words = schema === null ? 'an unknown schema' : `schema ${schema}`;
    throw new BadRecording(`the messages have ${words}, not schema ${SCHEMA}.`);
  }
  const type = message.get('type', oneOf(['snapshot', 'unloaded'] as const));
  return type === 'unloaded' ? { type } : { type, snapshot: readSnapshot(message) };
}

function sender(data: unknown): string {
  const version: unknown = (data as { version?: unknown } | null)?.version;
  const known = typeof version === 'string' && version.length < 40;
  return `this kernel has jupyter_jaxcb${known ? ` ${version}` : ''}`;
}

function readSnapshot(message: Fields): Snapshot {
  const sent = message.get('sites', list).length;
  const sites = message.get('sites', listOf(readSite, MOST_ENTRIES));
  const callbacks = message.get('callbacks', listOf(callbackOf(sent, sites.length), MOST_ENTRIES));
  const values = message.get('values', listOf(readValue, MOST_ENTRIES));
  return {
    version: message.get('version', text(NAME)),
    running: message.get('running', flag),
    callbacks,
    sites,
    values,
    more_sites: message.get('more_sites', whole()) + sent - sites.length,
    crcs: message.get('cells', readCrcs),
    byCell: placesByCell(sites, callbacks, values)
  };
}

/** Reads a callback whose sites are `sent` ones, of which the first `shown` are shown. */
function callbackOf(sent: number, shown: number): Reader<Callback> {
  return (value, path) => {
    const callback = readCallback(value, path);
    callback.sites.forEach((site, place) => whole(0, sent - 1)(site, `${path}.sites[${place}]`));
    return { ...callback, sites: callback.sites.filter(site => site < shown) };
  };
}

function readCrcs(value: unknown, path: string): Map<string, number> {
  const cells = new Fields(value, path);
  const ids = Object.keys(value as object);
  return new Map(ids.map(id => [id, cells.get(id, whole())]));
}

export function placesByCell(
  sites: readonly Site[],
  callbacks: readonly Callback[],
  values: readonly Value[]
): Map<string, CellPlaces> {
  const found = new Map<string, Record<keyof CellPlaces, number[]>>();
  const add = (kind: keyof CellPlaces, cell: string | null, place: number): void => {
    if (cell !== null) {
      const places = found.get(cell) ?? { sites: [], callbacks: [], values: [] };
      places[kind].push(place);
      found.set(cell, places);
    }
  };
  sites.forEach((site, place) => add('sites', site.cell_id, place));
  callbacks.forEach((callback, place) => add('callbacks', callback.cell, place));
  values.forEach((value, place) => add('values', value.cell, place));
  return found;
}

function readReply(reply: Fields, [columns, crossings]: readonly Bytes[]): Reply {
  const calls = columns && {
    rows: reply.get('rows', whole()),
    unit_ns: reply.get('unit_ns', whole()),
    data: viewOf(columns),
    crossings: crossings?.byteLength ? viewOf(crossings) : undefined
  };
  return {
    id: reply.get('id', text(NAME)),
    facts: reply.getOr('facts', null, anything),
    measured: reply.getOr('measured', null, anything),
    calls: calls ?? null,
    runs: reply.getOr('runs', null, anything)
  };
}

/** What the view reads itself. */
function anything(value: unknown): unknown {
  return value;
}

function viewOf(bytes: Bytes): DataView {
  return ArrayBuffer.isView(bytes)
    ? new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    : new DataView(bytes);
}
