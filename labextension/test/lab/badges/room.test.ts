import type { EditorView } from '@codemirror/view';
import { expect, test } from 'vitest';
import { h } from '../../../src/view/dom/elements.js';
import { fitBadges } from '../../../src/lab/badges/room.js';

/** The badge of a line that ends at `left`, of code `width` wide in an editor 500 wide. */
function fitted(left: number, width: number, scrollLeft = 0): [string, string, boolean] {
  const row = h('span');
  const badge = h('span', { class: 'jaxcb-badge' }, h('span', {}, row));
  const contentDOM = h('div', {}, badge);
  const scrollDOM = Object.assign(h('div'), { scrollLeft });
  Object.defineProperty(scrollDOM, 'clientWidth', { value: 500 });
  contentDOM.getBoundingClientRect = () => new DOMRect(-scrollLeft, 0, width, 20);
  badge.getBoundingClientRect = () => new DOMRect(left - scrollLeft, 0, 0, 20);
  const requestMeasure = (step: { read(): unknown; write(read: unknown): void }): void =>
    step.write(step.read());
  fitBadges({ contentDOM, scrollDOM, requestMeasure } as unknown as EditorView);
  return [row.style.left, row.style.maxWidth, badge.classList.contains('jaxcb-badge-sticks')];
}

test('limits a badge to the right edge of the editor', () => {
  expect(fitted(100, 500)).toEqual(['14px', '386px', false]);
});

test('shows the sign of a badge over the end of the code if there is no room after it', () => {
  expect(fitted(495, 500)).toEqual(['-7px', '12px', false]);
});

test('shows the sign of a badge close to the code if there is room for no more', () => {
  expect(fitted(481, 500)).toEqual(['2px', '17px', false]);
});

test('limits the badges of short lines where code scrolls, wherever it is scrolled to', () => {
  expect(fitted(100, 900)).toEqual(['14px', '386px', false]);
  expect(fitted(100, 900, 300)).toEqual(['14px', '386px', false]);
});

test('keeps the badge of a long line at the right edge where code scrolls', () => {
  expect(fitted(850, 900)).toEqual(['', '', true]);
  expect(fitted(850, 900, 400)).toEqual(['', '', true]);
});
