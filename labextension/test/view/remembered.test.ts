import { expect, test } from 'vitest';

import { h } from '../../src/view/dom/elements.js';
import { NO_LOOK, remember, remembered, type Look } from '../../src/view/remembered.js';

const LOOK: Look = { ...NO_LOOK, expanded: true, tab: 'Calls' };

function aView(): HTMLElement {
  return h('div', { class: 'jaxcb-view' });
}

test('the next view at the same place in a cell gets the look of the last', () => {
  const cell = h('div', { class: 'jp-Cell' }, aView(), aView());
  remember(cell.children[1]!, LOOK);
  cell.replaceChildren(aView(), aView());
  expect(remembered(cell.children[1]!)).toEqual(LOOK);
  expect(remembered(cell.children[0]!)).toBeNull();
});

test('cells do not share looks', () => {
  const [one, other] = [aView(), aView()];
  h('div', {}, h('div', { class: 'jp-Cell' }, one), h('div', { class: 'jp-Cell' }, other));
  remember(one, LOOK);
  expect(remembered(other)).toBeNull();
});

test('a view outside of a notebook cell remembers nothing', () => {
  const view = aView();
  remember(view, LOOK);
  expect(remembered(view)).toBeNull();
});
