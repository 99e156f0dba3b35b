import type { EditorView } from '@codemirror/view';
import { expect, test } from 'vitest';
import { h } from '../../../src/view/dom.js';
import { fitBadges } from '../../../src/lab/badges/room.js';

/** Where a badge goes that begins at `left`, in code `width` wide in an editor 500 wide. */
function fitted(left: number, width: number): [left: string, maxWidth: string] {
  const row = h('span');
  const badge = h('span', { class: 'jaxcb-badge' }, row);
  const contentDOM = h('div', {}, badge);
  const scrollDOM = Object.defineProperty(h('div'), 'clientWidth', { value: 500 });
  contentDOM.getBoundingClientRect = () => new DOMRect(0, 0, width, 20);
  badge.getBoundingClientRect = () => new DOMRect(left, 0, 0, 20);
  const requestMeasure = (step: { read(): unknown; write(read: unknown): void }): void =>
    step.write(step.read());
  fitBadges({ contentDOM, scrollDOM, requestMeasure } as unknown as EditorView);
  return [row.style.left, row.style.maxWidth];
}

test('a badge ends where the editor ends', () => {
  expect(fitted(100, 500)).toEqual(['14px', '386px']);
});

test('where the code leaves no room its sign is seen, over the end of the code', () => {
  expect(fitted(495, 500)).toEqual(['-17px', '22px']);
});

test('code that scrolls sideways may scroll as far as the badge needs', () => {
  expect(fitted(495, 900)).toEqual(['14px', 'none']);
});
