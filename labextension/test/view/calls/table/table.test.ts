import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { EVERYTHING, type Store } from '../../../../src/view/data/store.js';
import { columnsOf, fitting } from '../../../../src/view/calls/table/columns.js';
import { ROW } from '../../../../src/view/calls/table/scroll.js';
import { CallTable } from '../../../../src/view/calls/table/table.js';
import { figuresOf } from '../../../../src/view/calls/distribution/figures.js';
import { type Call, columns, NO_FIGURES, storeOf, VARIANT } from '../stores.js';

let frames: FrameRequestCallback[];

beforeEach(() => {
  frames = [];
  vi.stubGlobal('requestAnimationFrame', (each: FrameRequestCallback) => frames.push(each));
  vi.stubGlobal('cancelAnimationFrame', () => frames.splice(0));
});

afterEach(() => {
  vi.unstubAllGlobals();
  document.body.replaceChildren();
});

const CALLS: Call[] = [
  { start: 0, duration: 30, element: 2 },
  { start: 10, duration: 10, variant: 1, thread: 1, error: 1 },
  { start: 20, duration: 20, element: 1 },
  { start: 30, duration: 10, variant: 7 }
];
const ONE = { sites: ['bessel, line 3'], threads: ['MainThread'], errors: [] };
const many = (count: number) => Array.from({ length: count }, (_, n) => ({ start: 20 * n }));

function open(store: Store, figures = NO_FIGURES) {
  const table = new CallTable(store, figures);
  document.body.append(table.filters.node, table.node);
  const grid = table.node.querySelector<HTMLElement>('[role=grid]')!;
  const rows = () =>
    [...grid.querySelectorAll<HTMLElement>('[data-row]')]
      .filter(row => !row.hidden)
      .sort((a, b) => Number(a.ariaRowIndex) - Number(b.ariaRowIndex));
  const titles = () => [...grid.querySelectorAll<HTMLElement>('[role=columnheader]')];
  const filters = table.filters.node;
  return {
    table, grid, rows, titles, filters,
    numbers: () => rows().map(row => Number(row.dataset.row)),
    words: (nth: number) => [...rows()[nth]!.children].map(cell => cell.textContent),
    sort: (column: string) => titles().find(each => each.textContent!.startsWith(column))!.querySelector('button')!.click(),
    press: (key: string) => grid.dispatchEvent(new KeyboardEvent('keydown', { key, cancelable: true })),
    find: (text: string) =>
      [...filters.querySelectorAll<HTMLElement>('label, button')].find(each => each.textContent!.includes(text))!,
    count: () => filters.querySelector('output')!.textContent
  };
}

function choose(select: HTMLSelectElement, value: string): void {
  select.value = value;
  select.dispatchEvent(new Event('change'));
}

test('shows every field in which calls differ, as plain text, and NaN in red', () => {
  const samples = new Map([[0, '[1, -inf, …] → nan'], [2, 'NaN or infinity'], [3, 'banana → 1']]);
  const { grid, rows, words } = open(storeOf(CALLS, { samples, sites: ['<b>f</b>, line 3', 'g, m.py:12'] }));
  expect([0, 1].map(words)).toEqual([
    ['1', '<b>f</b>, line 3', '2', '0.0 µs', '30 ns', 'MainThread', '', '[1, -inf, …] → nan'],
    ['2', 'g, m.py:12', '', '0.0 µs', '10 ns', 'worker-1', 'ValueError: no luck', '']
  ]);
  expect([words(3)[1], grid.querySelector('b')]).toEqual(['unknown site', null]);
  const red = rows().map(row => [...row.querySelectorAll('.jaxcb-not-finite')].map(each => each.textContent));
  expect(red).toEqual([['-inf', 'nan'], [], ['NaN or infinity'], []]);
});

test('shows a column, and a filter, as soon as calls differ in it', () => {
  const store = storeOf([{ start: 0 }], ONE);
  const { filters, grid, titles, words } = open(store);
  const shown = () => [
    titles().map(each => each.textContent), filters.querySelectorAll('label:not([hidden])').length
  ];
  const attributes = [grid.getAttribute('aria-colcount'), filters.hidden]; // of a single call
  expect([...shown(), ...attributes]).toEqual([['#', 'Start', 'Duration'], 0, '3', true]);
  store.calls.append(columns([{ start: 10, element: 4 }]));
  store.grown();
  frames.splice(0).forEach(frame => frame(0));
  store.relabel({ ...store.labels, threads: ['MainThread', 'worker-1'] });
  expect([...shown(), filters.hidden]).toEqual([
    ['#', 'Element', 'Start', 'Duration', 'Thread'], 1, false
  ]);
  expect(words(1).at(-1)).toBe('MainThread');
});

test('leaves out as few columns as possible where they do not fit, never number, site and duration', () => {
  const all = columnsOf(storeOf([]));
  const names = (width: number): string => fitting(all, width).map(({ title }) => title).join(' ');
  expect([names(0), names(1020)]).toEqual(Array(2).fill(all.map(({ title }) => title).join(' ')));
  expect(names(900)).toBe('# Site Element Start Duration Thread Error Values');
  expect(names(100)).toBe('# Site Duration');
});

test('has elements for only a few of many rows, and shows others when scrolled', () => {
  const { grid, numbers, rows } = open(storeOf(many(100_000)));
  expect([rows().length < 20, rows()[0]!.ariaRowIndex, grid.getAttribute('aria-rowcount')]).toEqual([
    true, '2', '100001'
  ]);
  grid.scrollTop = 500 * ROW;
  grid.dispatchEvent(new Event('scroll'));
  expect([numbers().includes(505), numbers().includes(0)]).toEqual([true, false]);
});

test('sorts by every column', () => {
  const smaller = { ...VARIANT, shapes: '(2,) → ()' };
  const samples = new Map([[0, 'b'], [2, 'a']]);
  const { numbers, titles } = open(storeOf(CALLS, { variants: [VARIANT, smaller], samples }));
  const orders = titles().map(title => (title.querySelector('button')!.click(), numbers().join('')));
  expect(orders).toEqual([
    '0123', // number
    '0213', // site
    '1320', // element
    '0123', // start
    '1320', // duration
    '0231', // thread
    '1023', // shapes; the variant of the last call is unknown
    '0231', // error
    '1320' // values
  ]);
});

test('sorts texts in natural order', () => {
  const threads = ['worker-10', 'worker-2', 'main'];
  const { numbers, sort } = open(storeOf(threads.map((_, thread) => ({ start: thread, thread })), { threads }));
  sort('Thread');
  expect(numbers()).toEqual([2, 1, 0]);
});

test('sorts up, then down, also as an earlier table of the cell did, and new calls in among the others', () => {
  const store = storeOf(CALLS);
  const { numbers, sort, titles } = open(store);
  const direction = () => titles()[4]!.getAttribute('aria-sort');
  expect(direction()).toBe('none');
  sort('Duration');
  expect([numbers(), direction()]).toEqual([[1, 3, 2, 0], 'ascending']);
  sort('Duration');
  expect([numbers(), direction()]).toEqual([[0, 2, 1, 3], 'descending']);
  const next = storeOf(CALLS);
  next.layout = store.layout;
  const again = open(next);
  expect(again.numbers()).toEqual([0, 2, 1, 3]);
  next.calls.append(columns([{ start: 40, duration: 15 }]));
  next.grown();
  next.grown();
  expect(frames).toHaveLength(1);
  frames[0]!(0);
  expect(again.numbers()).toEqual([0, 2, 4, 1, 3]);
});

test('filters with its controls, which reflect filters of other views, and counts the calls that pass', async () => {
  const store = storeOf(CALLS);
  const { count, filters, find, numbers } = open(store, await figuresOf(store));
  const [site, thread] = filters.querySelectorAll('select');
  const search = filters.querySelector<HTMLInputElement>('[type=search]')!;
  expect([count(), site!.textContent]).toEqual([
    '4 calls', 'all sitesbessel, line 3 (2)lookup, model.py:12 (1)'
  ]);
  choose(site!, '0');
  expect([numbers(), count(), store.filter.site]).toEqual([[0, 2], '2 of 4 calls', 0]);
  choose(site!, '');
  choose(thread!, '1');
  expect(numbers()).toEqual([1]);
  choose(thread!, '');
  find('failed only').querySelector('input')!.click();
  expect([numbers(), store.filter.errors]).toEqual([[1], true]);
  search.value = 'main';
  search.dispatchEvent(new Event('input'));
  expect(store.filter).toEqual({ ...EVERYTHING, errors: true, text: 'main' });
  store.narrow({ ...EVERYTHING, site: 1, thread: 1, text: 'luck' });
  const shown = [site!.value, thread!.value, search.value, filters.querySelector('input')!.checked];
  expect(shown).toEqual(['1', '1', 'luck', false]);
});

test('has a button for the range of durations and one for all filters, which pass on their focus', () => {
  const store = storeOf(CALLS);
  const { filters, find } = open(store);
  const [chip, clear] = [filters.querySelector<HTMLElement>('.jaxcb-table-chip')!, find('Clear filters')];
  expect([chip.hidden, clear.hidden]).toEqual([true, true]);
  store.narrow({ ...EVERYTHING, site: 0, durations: [20, 40] });
  expect([chip.ariaLabel, chip.textContent]).toEqual(['20 ns – 40 ns: remove this filter', '20 ns – 40 ns✕']);
  chip.focus();
  chip.click();
  expect([store.filter, document.activeElement]).toEqual([
    { ...EVERYTHING, site: 0 }, filters.querySelector('[type=search]')
  ]);
  clear.click();
  expect([clear.hidden, store.filter]).toEqual([true, EVERYTHING]);
});

test('filters calls that returned NaN or infinity, and jumps to the first for finite arguments', () => {
  const store = storeOf(CALLS, { notFinite: new Map([[0, true], [2, false], [3, false]]) });
  const { find, numbers } = open(store);
  find('NaN or infinity').querySelector('input')!.click();
  expect(numbers()).toEqual([0, 2, 3]);
  store.narrow({ ...EVERYTHING, errors: true });
  find('Jump to first').click();
  expect([store.selected, store.filter]).toEqual([2, EVERYTHING]);
  const { find: other } = open(storeOf(CALLS));
  expect([other('NaN or infinity').hidden, other('Jump to first').hidden]).toEqual([true, true]);
});

test('a call that the user stopped is not marked, and there is nothing to filter', () => {
  const { find, rows, words } = open(storeOf(CALLS, { errors: ['stopped by you'] }));
  expect(words(1).at(-1)).toBe('stopped by you');
  expect([rows()[1]!.classList.contains('jaxcb-table-failed'), find('failed only').hidden]).toEqual([false, true]);
});

test('shows a note if no call passes the filter, with a button that clears it', () => {
  const store = storeOf(CALLS);
  const { grid, table } = open(store);
  const note = table.node.querySelector<HTMLElement>('.jaxcb-table-empty')!;
  expect([grid.hidden, note.hidden]).toEqual([false, true]);
  store.narrow({ ...EVERYTHING, site: 0, thread: 1 });
  expect([grid.hidden, note.hidden]).toEqual([true, false]);
  note.querySelector('button')!.click();
  expect([grid.hidden, note.hidden, store.filter]).toEqual([false, true, EVERYTHING]);
});

test('a click on a row selects its call', () => {
  const store = storeOf(CALLS);
  const { grid, rows } = open(store);
  (rows()[2]!.firstElementChild as HTMLElement).click();
  expect([store.selected, rows()[2]!.ariaSelected, document.activeElement]).toEqual([2, 'true', grid]);
});

test('scrolls to the row that another view selects, in any sort order', () => {
  const store = storeOf(many(1000));
  const { grid, numbers, sort } = open(store);
  store.select(700);
  const active = document.getElementById(grid.getAttribute('aria-activedescendant')!)!;
  expect([numbers().includes(700), active.dataset.row]).toEqual([true, '700']);
  sort('#');
  sort('#');
  store.select(999);
  expect(numbers()[0]).toBe(999);
});

test('keys move the selection, unless they are pressed on a title or have no meaning', () => {
  const store = storeOf(many(1000));
  const { press, titles } = open(store);
  const keys = ['ArrowDown', 'ArrowDown', 'PageDown', 'End', 'ArrowDown', 'PageUp', 'ArrowUp', 'Home', 'Escape', 'Enter'];
  const rows = keys.map(key => (press(key), store.selected));
  expect(rows).toEqual([0, 1, 11, 999, 999, 989, 988, 0, null, 0]);
  expect(['Tab', 'a', 'End'].map(press)).toEqual([true, true, false]);
  const key = new KeyboardEvent('keydown', { key: 'Home', bubbles: true });
  titles()[0]!.querySelector('button')!.dispatchEvent(key);
  expect(store.selected).toBe(999);
});

test('updates when the labels change, and not after disposal', () => {
  const store = storeOf(CALLS);
  const { filters, grid, table, words } = open(store);
  store.relabel({ ...store.labels, sites: ['other, line 9', 'third, line 10'] });
  expect(words(0)[1]).toBe('other, line 9');
  expect(filters.querySelector('select')!.textContent).toContain('other, line 9');
  table.dispose();
  store.select(1);
  store.grown();
  expect([frames, grid.querySelector('[aria-selected=true]')]).toEqual([[], null]);
});
