import { expect, test, vi } from 'vitest';
import widget from '../../src/widget/index.js';

function modelOf(kind: string) {
  return { get: (name: string) => (name === 'kind' ? kind : null), on: vi.fn(), off: vi.fn(), send: vi.fn() };
}

test('the kernel is told that the page has loaded a live widget, which it may close then', () => {
  const model = modelOf('live');
  widget.initialize({ model });
  expect(model.send.mock.calls).toEqual([['loaded']]);
});

test('nothing is sent about the widget of a recording, which stays', () => {
  const model = modelOf('recording');
  widget.initialize({ model });
  expect(model.send).not.toHaveBeenCalled();
});
