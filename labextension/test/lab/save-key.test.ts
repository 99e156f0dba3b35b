import { beforeAll, beforeEach, expect, test, vi } from 'vitest';

import { listenForSave } from '../../src/lab/save-key.js';
import { h } from '../../src/view/dom/elements.js';

const save = vi.fn();

beforeAll(() => listenForSave(save));
beforeEach(() => save.mockClear());

/** Presses a key in a button inside an element of that class; returns whether it was taken. */
function press(where: string, key: KeyboardEventInit): boolean {
  const button = h('button', {});
  document.body.replaceChildren(h('div', { class: where }, button));
  return !button.dispatchEvent(
    new KeyboardEvent('keydown', { bubbles: true, cancelable: true, ...key })
  );
}

test.each([
  ['jaxcb-view', { key: 's', ctrlKey: true }],
  ['jaxcb-panel', { key: 'S', metaKey: true }]
])('saves in a %s on %j, instead of the browser', (where, key) => {
  expect(press(where, key)).toBe(true);
  expect(save).toHaveBeenCalledOnce();
});

test.each([
  ['jaxcb-view', { key: 's' }],
  ['jaxcb-view', { key: 'd', ctrlKey: true }],
  ['jaxcb-view', { key: 's', ctrlKey: true, shiftKey: true }],
  ['jp-Cell', { key: 's', ctrlKey: true }]
])('leaves to others, in a %s, %j', (where, key) => {
  expect(press(where, key)).toBe(false);
  expect(save).not.toHaveBeenCalled();
});
