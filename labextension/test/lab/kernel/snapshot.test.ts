import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { readMessage } from '../../../src/lab/kernel/snapshot.js';
import { notesOf } from '../../../src/lab/badges/notes.js';
import { CALLBACK, message, SITE, snapshot, VALUE } from '../snapshots.js';

// The Python tests check that Python still sends exactly this.
const SENT = JSON.parse(readFileSync('../tests/data/messages.json', 'utf8')).snapshot;

function trouble(data: unknown): string {
  const read = readMessage(data);
  return read.type === 'trouble' ? read.text : `read as ${read.type}`;
}

test('reads what Python sends without loss', () => {
  const read = readMessage(SENT);
  const { callbacks, sites, values, cells } = SENT;
  expect(read).toMatchObject({ type: 'snapshot', snapshot: { running: true, callbacks, sites, values, cells } });
  const [bessel, log] = sites;
  expect([bessel.shapes.length, log.errors]).toEqual([1, ['2 failed']]);
});

test('reads a snapshot', () => {
  const read = snapshot({ sites: [SITE, { ...SITE, cell_id: null }, SITE], values: [VALUE] });
  expect(read.callbacks[0]!.options).toBe('vmap_method=expand_dims');
  expect(read.sites.map(site => site.cell_id)).toEqual(['two', null, 'two']);
  expect(read.cells['two']).toBe(0x0b0e9cb0);
  expect([read.running, snapshot({ running: true }).running]).toEqual([false, true]);
});

test.each([
  [2, 'schema 2'],
  [null, 'an unknown schema']
])('refuses a message with schema %s in one sentence, with advice', (schema, words) => {
  expect(trouble({ type: 'snapshot', schema, version: '0.3' })).toBe(
    'this kernel has jupyter_jaxcb 0.3, which sent what this JupyterLab extension cannot read: ' +
      `the messages have ${words}, not schema 1. Install the same version in both environments.`
  );
});

test.each([
  ['sites[0].calls is "5", not a whole number of at least 0.', { sites: [{ ...SITE, calls: '5' }] }],
  ['sites[0] is null, not an object.', { sites: [null] }],
  ['sites is an object, not a list.', { sites: {} }],
  ['callbacks[0].line is -1, not a whole number of at least 0.', { callbacks: [{ ...CALLBACK, line: -1 }] }],
  ['values[0].bad is 1, not true or false.', { values: [{ ...VALUE, bad: 1 }] }],
  ['running is missing.', { running: undefined }],
  ['cells is a list, not an object.', { cells: [] }],
  ['cells.two is "x", not a whole number of at least 0.', { cells: { two: 'x' } }]
])('rejects a message in which %s', (why, parts) => {
  expect(trouble(message(parts))).toBe(
    'this kernel has jupyter_jaxcb 0.1.0, which sent what this JupyterLab extension cannot read: ' +
      `${why} Install the same version in both environments.`
  );
});

test.each([null, 7, [], 'snapshot', { type: 'other', schema: 1 }, {}])(
  'reports the malformed message %j without throwing',
  data => {
    expect(trouble(data)).toMatch(/^this kernel has jupyter_jaxcb.* Install the same version/);
  }
);

test('reads the first 1,000 sites and counts the others, to which no callback refers then', () => {
  const sites = Array(20_000).fill(SITE);
  const read = snapshot({ sites, more_sites: 7, callbacks: [{ ...CALLBACK, sites: [3, 19_999] }] });
  expect([read.sites.length, read.more_sites]).toEqual([1_000, 19_007]);
  expect(read.callbacks[0]!.sites).toEqual([3]);
});

test('accepts any string as the id of a cell', () => {
  const cells = JSON.parse('{"__proto__": 7}') as object;
  const read = snapshot({ sites: [{ ...SITE, cell_id: '__proto__' }], cells });
  expect(notesOf(read, '__proto__')).toMatchObject({ crc: 7, lines: [{ line: 3 }] });
});

test('reads the raw calls of a recording from any offset in a buffer', () => {
  const bytes = new Uint8Array([9, 9, 1, 2]).subarray(2);
  const data = { type: 'recording', id: 'r', facts: {}, measured: {}, rows: 5, unit_ns: 100 };
  const read = readMessage(data, [bytes]);
  const calls = read.type === 'recording' ? read.reply.calls : null;
  expect(calls).toMatchObject({ rows: 5, unit_ns: 100 });
  expect([calls!.data.byteLength, calls!.data.getUint8(0)]).toEqual([2, 1]);
});

test('reads a recording without a buffer as one without calls', () => {
  const read = readMessage({ type: 'recording', id: 'r', facts: null });
  expect(read).toMatchObject({ type: 'recording', reply: { facts: null, calls: null } });
});
