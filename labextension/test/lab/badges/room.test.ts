import type { EditorView } from '@codemirror/view';
import { expect, test } from 'vitest';
import { h } from '../../../src/view/dom.js';
import { fitBadges } from '../../../src/lab/badges/room.js';

/** The position of a badge at `left`, in code `width` wide and an editor 500 wide. */
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

test('limits a badge to the right edge of the editor', () => {
  expect(fitted(100, 500)).toEqual(['14px', '386px']);
});

test('shows the sign of a badge over the end of the code if there is no room after it', () => {
  expect(fitted(495, 500)).toEqual(['-17px', '22px']);
});

test('does not limit the badge if the code already scrolls horizontally', () => {
  expect(fitted(495, 900)).toEqual(['14px', 'none']);
});
