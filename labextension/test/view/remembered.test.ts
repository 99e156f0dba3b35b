import { expect, test } from 'vitest';

import { h } from '../../src/view/dom/elements.js';
import { handedOver, handOver, NO_LOOK, remember, remembered, type Look } from '../../src/view/remembered.js';

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

test('a pinned run and an open view are handed over to the next page, once', () => {
  const site = { function: 'f', flavor: 'io', where: 'line 3', source: 'f(x)', consequence: 'kept' } as const;
  const pinned = { id: 'r', number: 4, code: '<b>', sites: [{ ...site, calls: 2, total: 5, p95: 3 }] };
  const look = { ...LOOK, profiled: true, pinned, compared: 'n o' };
  const [first, second] = [aView(), aView()];
  h('div', { class: 'jp-Cell' }, first, second);
  handOver('a.ipynb 1', second, look);
  handOver('a.ipynb 1', first, NO_LOOK);
  expect(handedOver('a.ipynb 1', first)).toBeNull();
  expect(handedOver('b.ipynb 1', second)).toBeNull();
  expect(handedOver('a.ipynb 1', second)).toEqual(look);
  expect(handedOver('a.ipynb 1', second)).toBeNull();
});

test.each(['{', '3', 'null', '{"pinned":3}', '{"pinned":{"runs":[{"id":7}]}}', '[]'])(
  'a damaged note of the page before (%s) pins nothing',
  text => {
    sessionStorage.setItem('jupyter_jaxcb c 0', text);
    const look = handedOver('c', aView());
    expect([look?.pinned ?? null, look?.expanded ?? false]).toEqual([null, false]);
  }
);
