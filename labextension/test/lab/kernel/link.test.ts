import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { KernelLink } from '../../../src/lab/kernel/link.js';
import { FakeKernel } from '../kernels.js';
import { message } from '../snapshots.js';

const HELLO = { type: 'hello', schema: 1 };

let kernel: FakeKernel;
const changed = vi.fn();

beforeEach(() => {
  vi.useFakeTimers();
  kernel = new FakeKernel();
  changed.mockClear();
});

afterEach(() => {
  vi.useRealTimers();
});

function createLink(): KernelLink {
  return new KernelLink(kernel.connection, changed);
}

test('sends one hello to a connected kernel, on a comm without a subshell', () => {
  createLink();
  expect(kernel.comm.sent).toEqual([HELLO]);
  expect(kernel.comm).toMatchObject({ commsOverSubshells: 'disabled' });
});

test('sends nothing to a kernel without our comm target, which would log a warning', () => {
  kernel.known = {};
  createLink();
  expect(kernel.comm.sent).toEqual([]);
});

test('sends the hello once a connecting kernel is connected', () => {
  kernel.connectionStatus = 'connecting';
  createLink();
  expect(kernel.comm.sent).toEqual([]);
  kernel.connectionStatusChanged.emit('connected');
  expect(kernel.comm.sent).toEqual([HELLO]);
});

test('receives a snapshot without a request', () => {
  const link = createLink();
  kernel.sends(message());
  expect(link.received.snapshot?.callbacks[0]?.name).toBe('bessel');
  expect(changed).toHaveBeenCalledOnce();
});

test('keeps the snapshot of a lost connection, and requests a new one after reconnecting', () => {
  const link = createLink();
  kernel.sends(message());
  kernel.connectionStatusChanged.emit('connecting');
  expect(link.received.snapshot).not.toBeNull();
  kernel.connectionStatusChanged.emit('connected');
  expect(kernel.comm.sent).toEqual([HELLO, HELLO]);
  expect(kernel.comms.length).toBe(1);
});

test('a restart clears the snapshot and listens on a new comm', () => {
  const link = createLink();
  kernel.sends(message());
  kernel.restart();
  expect(link.received.snapshot).toBeNull();
  expect(kernel.comms.length).toBe(2);
  expect(kernel.comm.sent).toEqual([HELLO]);
});

test('clears the snapshot when the kernel closes the comm or unloads the extension', () => {
  const link = createLink();
  kernel.sends(message());
  kernel.sends({ type: 'unloaded', schema: 1 });
  expect(link.received.snapshot).toBeNull();
  kernel.sends(message());
  kernel.comm.onClose();
  kernel.comm.dispose();
  expect(link.received.snapshot).toBeNull();
  vi.runAllTimers();
  expect(kernel.comms.length).toBe(2);
});

test('reports an unreadable message as trouble until a readable message arrives', () => {
  const link = createLink();
  kernel.sends({ type: 'snapshot', schema: 2 });
  expect(link.received.snapshot).toBeNull();
  expect(link.received.trouble).toMatch(/schema 2/);
  kernel.sends(message());
  expect(link.received.trouble).toBe('');
});

test('requests a recording, and ignores replies with other ids', async () => {
  const reply = createLink().everything('r1');
  expect(kernel.comm.sent[1]).toEqual({ type: 'recording', id: 'r1' });
  kernel.sends({ type: 'recording', id: 'r0', facts: { other: true } });
  kernel.sends({ type: 'recording', id: 'r1', facts: { mine: true } });
  expect(await reply).toMatchObject({ facts: { mine: true } });
});

test('returns null for a recording that the kernel no longer has', async () => {
  const reply = createLink().everything('r1');
  kernel.sends({ type: 'recording', id: 'r1', facts: null });
  expect(await reply).toBeNull();
});

test('requests a file with a suffix, which is null if the kernel cannot write it', async () => {
  const link = createLink();
  const [csv, gone] = [link.file('r1', '.csv'), link.file('r2', '.csv')];
  expect(kernel.comm.sent[1]).toEqual({ type: 'file', id: 'r1', suffix: '.csv' });
  kernel.sends({ type: 'file', id: 'r1', suffix: '.perfetto.json' }, [new Uint8Array([9]).buffer]);
  kernel.sends({ type: 'file', id: 'r1', suffix: '.csv' }, [new Uint8Array([65, 66]).buffer]);
  kernel.sends({ type: 'file', id: 'r2', suffix: '.csv' });
  expect(new TextDecoder().decode((await csv)!)).toBe('AB');
  expect(await gone).toBeNull();
});

test('returns the runs of a cell also if the kernel no longer has the recording', async () => {
  const reply = createLink().everything('r1');
  kernel.sends({ type: 'recording', id: 'r1', facts: null, runs: { sites: [], runs: [] } });
  expect(await reply).toMatchObject({ facts: null, calls: null, runs: { sites: [], runs: [] } });
});

test('waits for a recording as long as the kernel is busy', async () => {
  const reply = createLink().everything('r1');
  vi.advanceTimersByTime(3_600_000);
  kernel.sends({ type: 'recording', id: 'r1', facts: { mine: true } });
  expect(await reply).toMatchObject({ facts: { mine: true } });
});

test('returns null if the kernel restarts', async () => {
  const link = createLink();
  const restarted = link.everything('r1');
  kernel.statusChanged.emit('autorestarting');
  expect(await restarted).toBeNull();
});

test('sends no request to a dead kernel', async () => {
  const link = createLink();
  kernel.status = 'dead';
  expect(await link.everything('r1')).toBeNull();
  expect(kernel.comm.sent).toEqual([HELLO]);
});

test('creates no comm on a connection that does not handle comms', () => {
  kernel.handleComms = false;
  createLink();
  expect(kernel.comms).toEqual([]);
});

test('disposing the link closes only its own side of the comm', () => {
  const link = createLink();
  link.dispose();
  expect(kernel.comm.isDisposed).toBe(true);
  expect(kernel.comm.sent).toEqual([HELLO]);
  kernel.connectionStatusChanged.emit('connected');
  expect(kernel.comms.length).toBe(1);
});
