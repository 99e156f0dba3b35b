/** Reads a kernel's messages about its callbacks: untrusted data, so every field is checked. */

import { BadRecording } from '../../view/data/parse/fields.js';
import { readVariant } from '../../view/data/parse/site.js';
import { CONSEQUENCES, type Consequence, type Variant } from '../../view/data/schema.js';
import type { RawCalls } from '../../view/view.js';

export const PROTOCOL = 1;

const MOST_ENTRIES = 500; // of a list; a kernel sends no more sites

/** A registered callback. */
export interface Callback {
  readonly name: string;
  readonly flavor: string;
  readonly options: string;
  readonly cell: string | null; // JupyterLab's id of the cell; null: a file or an unknown cell
  readonly line: number;
  readonly where: string; // may be empty
  readonly sites: readonly number[];
  readonly calls: number;
  readonly elided: number;
  readonly errors: number;
  readonly host_ns: number;
}

/** A line that binds a callback, with totals over the session. */
export interface CallSite {
  readonly function: string;
  readonly flavor: string;
  readonly cell: string | null;
  readonly line: number;
  readonly column: number;
  readonly where: string;
  readonly source: string; // the line, stripped
  readonly consequence: Consequence;
  readonly reason: string;
  readonly advice: string;
  readonly calls: number;
  readonly elided: number;
  readonly host_ns: number;
  readonly shapes: string;
  readonly vmap: Variant | null; // the shapes to draw in a tooltip
  readonly errors: readonly string[];
}

/** Indices of the sites and callbacks in one cell. */
export interface CellPlaces {
  readonly sites: readonly number[];
  readonly callbacks: readonly number[];
}

export interface Snapshot {
  readonly version: string;
  readonly running: boolean;
  readonly callbacks: readonly Callback[];
  readonly sites: readonly CallSite[];
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
    return read(record(data, 'the message'), buffers);
  } catch (error) {
    if (!(error instanceof Malformed)) {
      throw error;
    }
    return { type: 'trouble', text: `${sender(data)}, which sent ${error.message}. ${SAME}` };
  }
}

const SAME = 'Install the same version in both environments.';

class Malformed extends Error {}

type Fields = Readonly<Record<string, unknown>>;

function read(data: Fields, buffers: readonly Bytes[]): Message {
  if (data['type'] === 'recording') {
    return { type: 'recording', reply: readReply(data, buffers[0]) };
  }
  if (data['protocol'] !== PROTOCOL) {
    return { type: 'trouble', text: otherProtocol(data) };
  }
  if (data['type'] === 'unloaded') {
    return { type: 'unloaded' };
  }
  if (data['type'] === 'snapshot') {
    return { type: 'snapshot', snapshot: readSnapshot(data) };
  }
  throw new Malformed('a message of a type that this JupyterLab extension does not know');
}

function otherProtocol(data: Fields): string {
  const used = data['protocol'];
  const words = typeof used === 'number' ? `protocol ${used}` : 'an unknown protocol';
  return (
    `${sender(data)}, which uses ${words}; this JupyterLab extension uses protocol ` +
    `${PROTOCOL}. ${SAME}`
  );
}

function sender(data: unknown): string {
  const version = isRecord(data) ? data['version'] : null;
  const known = typeof version === 'string' && version.length < 40;
  return `this kernel has jupyter_jaxcb${known ? ` ${version}` : ''}`;
}

function readSnapshot(data: Fields): Snapshot {
  const sites = list(data['sites'], 'sites', readSite);
  const callbacks = list(data['callbacks'], 'callbacks', readCallback);
  const sent = (data['sites'] as unknown[]).length;
  for (const [place, callback] of callbacks.entries()) {
    check(callback.sites.every(site => site < sent), `callbacks[${place}].sites`);
  }
  const crcs = Object.entries(record(data['cells'], 'cells'));
  return {
    version: text(data['version'], 'version'),
    running: data['running'] === true,
    callbacks: callbacks.map(callback => ({
      ...callback,
      sites: callback.sites.filter(site => site < sites.length)
    })),
    sites,
    more_sites: count(data['more_sites'], 'more_sites') + sent - sites.length,
    crcs: new Map(crcs.map(([cell, crc]) => [cell, count(crc, 'cells')])),
    byCell: placesByCell(sites, callbacks)
  };
}

function readCallback(value: unknown, at: string): Callback {
  const data = record(value, at);
  return {
    name: text(data['name'], `${at}.name`),
    flavor: text(data['flavor'], `${at}.flavor`),
    options: text(data['options'], `${at}.options`),
    cell: cellId(data['cell'], `${at}.cell`),
    line: count(data['line'], `${at}.line`),
    where: text(data['where'], `${at}.where`),
    sites: list(data['sites'], `${at}.sites`, count),
    calls: count(data['calls'], `${at}.calls`),
    elided: count(data['elided'], `${at}.elided`),
    errors: count(data['errors'], `${at}.errors`),
    host_ns: count(data['host_ns'], `${at}.host_ns`)
  };
}

function readSite(value: unknown, at: string): CallSite {
  const data = record(value, at);
  const consequence = CONSEQUENCES.find(known => known === data['consequence']);
  check(consequence !== undefined, `${at}.consequence`);
  return {
    function: text(data['function'], `${at}.function`),
    flavor: text(data['flavor'], `${at}.flavor`),
    cell: cellId(data['cell'], `${at}.cell`),
    line: count(data['line'], `${at}.line`),
    column: count(data['column'], `${at}.column`),
    where: text(data['where'], `${at}.where`),
    source: text(data['source'], `${at}.source`),
    consequence,
    reason: text(data['reason'], `${at}.reason`),
    advice: text(data['advice'], `${at}.advice`),
    calls: count(data['calls'], `${at}.calls`),
    elided: count(data['elided'], `${at}.elided`),
    host_ns: count(data['host_ns'], `${at}.host_ns`),
    shapes: text(data['shapes'], `${at}.shapes`),
    vmap: data['vmap'] === null ? null : variant(data['vmap'], `${at}.vmap`),
    errors: list(data['errors'], `${at}.errors`, text)
  };
}

function variant(value: unknown, at: string): Variant {
  try {
    return readVariant(value, at);
  } catch (error) {
    check(!(error instanceof BadRecording), at);
    throw error;
  }
}

function placesByCell(
  sites: readonly CallSite[],
  callbacks: readonly Callback[]
): Map<string, CellPlaces> {
  const found = new Map<string, { sites: number[]; callbacks: number[] }>();
  const add = (kind: 'sites' | 'callbacks', cell: string | null, place: number): void => {
    if (cell !== null) {
      const places = found.get(cell) ?? { sites: [], callbacks: [] };
      places[kind].push(place);
      found.set(cell, places);
    }
  };
  sites.forEach((site, place) => add('sites', site.cell, place));
  callbacks.forEach((callback, place) => add('callbacks', callback.cell, place));
  return found;
}

function readReply(data: Fields, buffer: Bytes | undefined): Reply {
  const calls = buffer && {
    rows: count(data['rows'], 'rows'),
    unit_ns: count(data['unit_ns'], 'unit_ns'),
    data: viewOf(buffer)
  };
  const facts = data['facts'] ?? null;
  return { id: text(data['id'], 'id'), facts, measured: data['measured'], calls: calls ?? null };
}

function viewOf(bytes: Bytes): DataView {
  return ArrayBuffer.isView(bytes)
    ? new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    : new DataView(bytes);
}

function check(holds: boolean, at: string): asserts holds {
  if (!holds) {
    throw new Malformed(`data that this JupyterLab extension cannot read (${at})`);
  }
}

function isRecord(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function record(value: unknown, at: string): Fields {
  check(isRecord(value), at);
  return value;
}

function list<T>(value: unknown, at: string, item: (value: unknown, at: string) => T): T[] {
  check(Array.isArray(value), at);
  return value.slice(0, MOST_ENTRIES).map((each, place) => item(each, `${at}[${place}]`));
}

function text(value: unknown, at: string): string {
  check(typeof value === 'string', at);
  return value;
}

function count(value: unknown, at: string): number {
  check(typeof value === 'number' && Number.isSafeInteger(value) && value >= 0, at);
  return value;
}

function cellId(value: unknown, at: string): string | null {
  return value === null ? null : text(value, at);
}
