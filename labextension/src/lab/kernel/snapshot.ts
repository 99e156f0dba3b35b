/** Reads a kernel's messages about its callbacks, which may be anything. */

import { conform, isObject, mismatch } from '../../view/data/parse/conform.js';
import { SCHEMA, type Reply as Sent, type Snapshot } from '../../view/data/schema.js';
import type { Everything, RawCalls } from '../../view/view.js';

export type { Callback, Snapshot, Value } from '../../view/data/schema.js';

/** The reply to a request for a recording. */
export interface Reply extends Everything {
  readonly id: string;
}

export type Message =
  | { readonly type: 'snapshot'; readonly snapshot: Snapshot }
  | { readonly type: 'unloaded' }
  | { readonly type: 'recording'; readonly reply: Reply }
  | { readonly type: 'file'; readonly id: string; readonly suffix: string; readonly data: DataView | null }
  | { readonly type: 'trouble'; readonly text: string };

type Bytes = ArrayBuffer | ArrayBufferView;

/** Reads a message of the kernel; returns `trouble`, with a text for the user, if it is malformed. */
export function readMessage(data: unknown, buffers: readonly Bytes[] = []): Message {
  const { type, schema = null, sites, id, suffix } = isObject(data) ? data : {};
  if (type === 'file') {
    const [written] = buffers;
    const file = written?.byteLength ? viewOf(written) : null; // empty: the kernel cannot write it
    return { type, id: String(id), suffix: String(suffix), data: file };
  }
  if (type === 'recording') {
    const [reply, damage] = conform('Reply', data);
    return damage ? trouble(data, damage) : { type, reply: { ...reply, calls: callsIn(reply, buffers) } };
  }
  if (schema !== SCHEMA) {
    const words = Number.isInteger(schema) ? `schema ${String(schema)}` : 'an unknown schema';
    return trouble(data, `the messages have ${words}, not schema ${SCHEMA}.`);
  }
  if (type !== 'snapshot') {
    const why = mismatch('type', type, 'one of snapshot, unloaded');
    return type === 'unloaded' ? { type } : trouble(data, why);
  }
  const [snapshot, damage] = conform('Snapshot', data);
  const left = Array.isArray(sites) ? sites.length - snapshot.sites.length : 0;
  return damage
    ? trouble(data, damage)
    : { type, snapshot: { ...complete(snapshot), more_sites: snapshot.more_sites + left } };
}

/** Forgets references to sites that were not read, or do not exist. */
function complete(snapshot: Snapshot): Snapshot {
  const { length } = snapshot.sites;
  const callbacks = snapshot.callbacks.map(callback => ({
    ...callback,
    sites: callback.sites.filter(site => site < length)
  }));
  return { ...snapshot, callbacks };
}

function trouble(data: unknown, why: string): Message {
  const version = isObject(data) ? data['version'] : '';
  const known = typeof version === 'string' && version.length < 40;
  const words = 'which sent what this JupyterLab extension cannot read:';
  const sender = `this kernel has jupyter_jaxcb${known && version ? ` ${version}` : ''}`;
  return {
    type: 'trouble',
    text: `${sender}, ${words} ${why} Install the same version in both environments.`
  };
}

/** The calls of a reply, whose columns are in the buffers of its message. */
function callsIn(reply: Sent, [columns, crossings]: readonly Bytes[]): RawCalls | null {
  const { rows, unit_ns } = reply;
  const more = crossings?.byteLength ? viewOf(crossings) : undefined;
  return columns ? { rows, unit_ns, data: viewOf(columns), crossings: more } : null;
}

function viewOf(bytes: Bytes): DataView {
  return ArrayBuffer.isView(bytes)
    ? new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    : new DataView(bytes);
}
