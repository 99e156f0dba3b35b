import { expect, test, vi } from 'vitest';
import { Hub } from '../../../src/lab/kernel/service.js';
import { FakeKernel, FakeSession } from '../kernels.js';
import { CALLBACK, message } from '../snapshots.js';

function named(name: string): Record<string, unknown> {
  return message({ callbacks: [{ ...CALLBACK, name }] });
}

test('notebooks with equal cell ids receive the snapshots of their respective kernels', () => {
  const hub = new Hub();
  const notebooks = [{}, {}];
  const kernels = [new FakeKernel(), new FakeKernel()];
  kernels.forEach((kernel, i) => hub.follow(notebooks[i]!, new FakeSession(kernel).context));
  kernels.forEach((kernel, i) => kernel.sends(named(`of ${i}`)));
  const names = notebooks.map(each => hub.state(each).received.snapshot!.callbacks[0]!.name);
  expect(names).toEqual(['of 0', 'of 1']);
});

test('a listener added before the kernel starts is notified later', () => {
  const hub = new Hub();
  const notebook = {};
  const state = hub.state(notebook);
  const listener = vi.fn();
  state.on(listener);
  const session = new FakeSession();
  hub.follow(notebook, session.context);
  expect(state.hasKernel).toBe(false);
  const kernel = new FakeKernel();
  session.kernelChanged.emit({ newValue: kernel });
  kernel.sends(message());
  expect(state.received.snapshot).not.toBeNull();
  expect(listener).toHaveBeenCalledTimes(2);
});

test('a removed listener is no longer notified', () => {
  const kernel = new FakeKernel();
  const state = new Hub().state({});
  const listener = vi.fn();
  const off = state.on(listener);
  state.connect(kernel.connection);
  off();
  kernel.sends(message());
  expect(listener).toHaveBeenCalledOnce();
});

test('switching kernels clears the snapshot and disposes the old comm', () => {
  const hub = new Hub();
  const notebook = {};
  const [old, other] = [new FakeKernel(), new FakeKernel()];
  const session = new FakeSession(old);
  hub.follow(notebook, session.context);
  old.sends(message());
  session.kernelChanged.emit({ newValue: other });
  expect(hub.state(notebook).received.snapshot).toBeNull();
  expect(old.comm.isDisposed).toBe(true);
});

test('two views of one notebook share one comm', () => {
  const hub = new Hub();
  const notebook = {};
  const kernel = new FakeKernel();
  const session = new FakeSession(kernel);
  hub.follow(notebook, session.context);
  hub.follow(notebook, session.context);
  session.kernelChanged.emit({ newValue: kernel });
  expect(kernel.comms.length).toBe(1);
  expect(hub.state(notebook)).toBe(hub.state(notebook));
});

test('closing a notebook disposes its comm', () => {
  const kernel = new FakeKernel();
  const session = new FakeSession(kernel);
  new Hub().follow({}, session.context);
  session.disposed.emit(undefined);
  expect(kernel.comm.isDisposed).toBe(true);
});

test('a recording is requested when the notebook has its kernel', async () => {
  const notebook = {};
  const hub = new Hub();
  const reply = hub.state(notebook).everything('r');
  const kernel = new FakeKernel();
  hub.follow(notebook, new FakeSession(kernel).context);
  await vi.waitFor(() => expect(kernel.comm.sent).toContainEqual({ type: 'recording', id: 'r' }));
  kernel.sends({ type: 'recording', id: 'r', facts: { mine: true } });
  expect(await reply).toMatchObject({ facts: { mine: true } });
});
