import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { KernelLink } from '../../../src/lab/kernel/link.js';
import { FakeKernel } from '../kernels.js';
import { message } from '../made.js';

const HELLO = { type: 'hello', protocol: 1 };

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

function linked(): KernelLink {
  return new KernelLink(kernel.connection, changed);
}

test('a kernel that is there is greeted once, on a comm without a thread of its own', () => {
  linked();
  expect(kernel.comm.sent).toEqual([HELLO]);
  expect(kernel.comm).toMatchObject({ commsOverSubshells: 'disabled' });
});

test('nothing is sent to a kernel without the comm, which would log a warning', () => {
  kernel.known = {};
  linked();
  expect(kernel.comm.sent).toEqual([]);
});

test('a kernel that comes later is listened to at once and greeted when it is there', () => {
  kernel.connectionStatus = 'connecting';
  linked();
  expect(kernel.comm.sent).toEqual([]);
  kernel.connectionStatusChanged.emit('connected');
  expect(kernel.comm.sent).toEqual([HELLO]);
});

test('a snapshot is received without a request', () => {
  const link = linked();
  kernel.says(message());
  expect(link.received.snapshot?.callbacks[0]?.name).toBe('bessel');
  expect(changed).toHaveBeenCalledOnce();
});

test('a lost connection keeps the snapshot, and requests it again on reconnect', () => {
  const link = linked();
  kernel.says(message());
  kernel.connectionStatusChanged.emit('connecting');
  expect(link.received.snapshot).not.toBeNull();
  kernel.connectionStatusChanged.emit('connected');
  expect(kernel.comm.sent).toEqual([HELLO, HELLO]);
  expect(kernel.comms.length).toBe(1);
});

test('a restart forgets everything and listens on a new comm', () => {
  const link = linked();
  kernel.says(message());
  kernel.restart();
  expect(link.received.snapshot).toBeNull();
  expect(kernel.comms.length).toBe(2);
  expect(kernel.comm.sent).toEqual([HELLO]);
});

test('a kernel that closes the comm, or unloads the extension, clears the snapshot', () => {
  const link = linked();
  kernel.says(message());
  kernel.says({ type: 'unloaded', protocol: 1 });
  expect(link.received.snapshot).toBeNull();
  kernel.says(message());
  kernel.comm.onClose();
  kernel.comm.dispose();
  expect(link.received.snapshot).toBeNull();
  vi.runAllTimers();
  expect(kernel.comms.length).toBe(2);
});

test('an unreadable message is reported as trouble, until a readable one comes', () => {
  const link = linked();
  kernel.says({ type: 'snapshot', protocol: 2 });
  expect(link.received.snapshot).toBeNull();
  expect(link.received.trouble).toMatch(/protocol 2/);
  kernel.says(message());
  expect(link.received.trouble).toBe('');
});

test('a recording is requested, and replies for other ids are ignored', async () => {
  const reply = linked().everything('r1');
  expect(kernel.comm.sent[1]).toEqual({ type: 'recording', id: 'r1' });
  kernel.says({ type: 'recording', id: 'r0', facts: { other: true } });
  kernel.says({ type: 'recording', id: 'r1', facts: { mine: true } });
  expect(await reply).toMatchObject({ facts: { mine: true } });
});

test('a recording that the kernel has no more is null', async () => {
  const reply = linked().everything('r1');
  kernel.says({ type: 'recording', id: 'r1', facts: null });
  expect(await reply).toBeNull();
});

test('a kernel that does not reply in ten seconds, or restarts, has no recording', async () => {
  const link = linked();
  const silent = link.everything('r1');
  vi.advanceTimersByTime(10_000);
  expect(await silent).toBeNull();
  const restarted = link.everything('r1');
  kernel.statusChanged.emit('autorestarting');
  expect(await restarted).toBeNull();
});

test('a dead kernel is not asked', async () => {
  const link = linked();
  kernel.status = 'dead';
  expect(await link.everything('r1')).toBeNull();
  expect(kernel.comm.sent).toEqual([HELLO]);
});

test('a connection without comms is left alone', () => {
  kernel.handleComms = false;
  linked();
  expect(kernel.comms).toEqual([]);
});

test('hanging up leaves the kernel to others', () => {
  const link = linked();
  link.dispose();
  expect(kernel.comm.isDisposed).toBe(true);
  expect(kernel.comm.sent).toEqual([HELLO]);
  kernel.connectionStatusChanged.emit('connected');
  expect(kernel.comms.length).toBe(1);
});
