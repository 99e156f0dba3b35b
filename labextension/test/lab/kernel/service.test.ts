import { expect, test, vi } from 'vitest';
import { Hub } from '../../../src/lab/kernel/service.js';
import { FakeKernel, FakeSession } from '../kernels.js';
import { CALLBACK, message } from '../made.js';

function named(name: string): Record<string, unknown> {
  return message({ callbacks: [{ ...CALLBACK, name }] });
}

test('two notebooks with equal cells receive from their own kernels', () => {
  const hub = new Hub();
  const notebooks = [{}, {}];
  const kernels = [new FakeKernel(), new FakeKernel()];
  kernels.forEach((kernel, i) => hub.follow(notebooks[i]!, new FakeSession(kernel).context));
  kernels.forEach((kernel, i) => kernel.says(named(`of ${i}`)));
  const names = notebooks.map(each => hub.state(each).received.snapshot!.callbacks[0]!.name);
  expect(names).toEqual(['of 0', 'of 1']);
});

test('a listener that comes before the kernel is notified later', () => {
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
  kernel.says(message());
  expect(state.received.snapshot).not.toBeNull();
  expect(listener).toHaveBeenCalledTimes(2);
});

test('a removed listener is not notified', () => {
  const kernel = new FakeKernel();
  const state = new Hub().state({});
  const listener = vi.fn();
  const off = state.on(listener);
  state.connect(kernel.connection);
  off();
  kernel.says(message());
  expect(listener).toHaveBeenCalledOnce();
});

test('a new kernel starts empty, and the old one is ignored', () => {
  const hub = new Hub();
  const notebook = {};
  const [old, other] = [new FakeKernel(), new FakeKernel()];
  const session = new FakeSession(old);
  hub.follow(notebook, session.context);
  old.says(message());
  session.kernelChanged.emit({ newValue: other });
  expect(hub.state(notebook).received.snapshot).toBeNull();
  expect(old.comm.isDisposed).toBe(true);
});

test('two views of one notebook share one line to the kernel', () => {
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

test('a notebook that is closed hangs up', () => {
  const kernel = new FakeKernel();
  const session = new FakeSession(kernel);
  new Hub().follow({}, session.context);
  session.disposed.emit(undefined);
  expect(kernel.comm.isDisposed).toBe(true);
});

test('without a kernel there is no recording', async () => {
  expect(await new Hub().state({}).everything('r')).toBeNull();
});
