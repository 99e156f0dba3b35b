/** Reads a kernel's messages about its callbacks: untrusted data, so every field is checked. */

import {
  anything,
  BadRecording,
  flag,
  listOf,
  mapOf,
  objectOf,
  oneOf,
  or,
  orNull,
  text,
  whole,
  type Read
} from '../../view/data/parse/fields.js';
import { readSite } from '../../view/data/parse/site.js';
import { NAME, SCHEMA, SENTENCE } from '../../view/data/schema.js';
import type { Everything, RawCalls } from '../../view/view.js';

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

const readSnapshot = objectOf({
  version: text(NAME),
  running: flag,
  sites: listOf(readSite, MOST_ENTRIES),
  callbacks: listOf(readCallback, MOST_ENTRIES),
  values: listOf(readValue, MOST_ENTRIES),
  more_sites: whole(), // that are not in `sites`
  cells: mapOf(whole(), Infinity) // CRC-32 of its executed source, by cell
});
export interface Snapshot extends Read<typeof readSnapshot> {}

const readReply = objectOf({
  id: text(NAME),
  facts: or(anything, null), // null: the kernel no longer has it
  measured: or(anything, null),
  runs: or(anything, null), // of its cell, up to this one; null: unknown
  rows: or(whole(), 0),
  unit_ns: or(whole(), 0)
});

/** The reply to a request for a recording. */
export interface Reply extends Everything {
  readonly id: string;
}

const readHead = objectOf({ type: anything, schema: or(orNull(whole()), null) });
const readType = objectOf({ type: oneOf(['snapshot', 'unloaded']) });

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
  const { type, schema } = readHead(data, '');
  if (type === 'recording') {
    const reply = readReply(data, '');
    return { type, reply: { ...reply, calls: callsIn(reply, buffers) } };
  }
  if (schema !== SCHEMA) {
    const words = schema === null ? 'an unknown schema' : `schema ${schema}`;
    throw new BadRecording(`the messages have ${words}, not schema ${SCHEMA}.`);
  }
  return readType(data, '').type === 'unloaded'
    ? { type: 'unloaded' }
    : { type: 'snapshot', snapshot: complete(readSnapshot(data, ''), data) };
}

/** Counts the sites that were not read, and forgets their callbacks' references to them. */
function complete(snapshot: Snapshot, data: unknown): Snapshot {
  const sent = (data as { readonly sites: readonly unknown[] }).sites.length;
  const shown = snapshot.sites.length;
  const callbacks = snapshot.callbacks.map((callback, at) => {
    callback.sites.forEach((site, nth) => whole(0, sent - 1)(site, `callbacks[${at}].sites[${nth}]`));
    return { ...callback, sites: callback.sites.filter(site => site < shown) };
  });
  return { ...snapshot, callbacks, more_sites: snapshot.more_sites + sent - shown };
}

function sender(data: unknown): string {
  const version: unknown = (data as { version?: unknown } | null)?.version;
  const known = typeof version === 'string' && version.length < 40;
  return `this kernel has jupyter_jaxcb${known ? ` ${version}` : ''}`;
}

/** The calls of a reply, whose columns are in the buffers of its message. */
function callsIn(reply: Read<typeof readReply>, [columns, crossings]: readonly Bytes[]): RawCalls | null {
  const { rows, unit_ns } = reply;
  const more = crossings?.byteLength ? viewOf(crossings) : undefined;
  return columns ? { rows, unit_ns, data: viewOf(columns), crossings: more } : null;
}

function viewOf(bytes: Bytes): DataView {
  return ArrayBuffer.isView(bytes)
    ? new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    : new DataView(bytes);
}
