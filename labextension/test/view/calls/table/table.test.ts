import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { EVERYTHING, type Store } from '../../../../src/view/data/store.js';
import { CallTable } from '../../../../src/view/calls/table/table.js';
import { ROW } from '../../../../src/view/calls/table/scroll.js';
import { type Figures, figuresOf } from '../../../../src/view/calls/distribution/figures.js';
import { type Call, columns, NO_FIGURES, storeOf, VARIANT } from '../stores.js';

describe('CallTable', () => {
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

  function open(store: Store, figures: Figures = NO_FIGURES) {
    const table = new CallTable(store, figures);
    document.body.append(table.filters.node, table.node);
    const grid = table.node.querySelector<HTMLElement>('[role=grid]')!;
    return { table, grid };
  }

  const visibleRows = (grid: Element) =>
    [...grid.querySelectorAll<HTMLElement>('[data-row]')]
      .filter(row => !row.hidden)
      .sort((a, b) => Number(a.ariaRowIndex) - Number(b.ariaRowIndex));
  const numbers = (grid: Element) => visibleRows(grid).map(row => Number(row.dataset.row));
  const words = (row: Element) => [...row.children].map(cell => cell.textContent);
  const press = (grid: Element, key: string) =>
    grid.dispatchEvent(new KeyboardEvent('keydown', { key, cancelable: true }));
  const many = (count: number) => Array.from({ length: count }, (_, n) => ({ start: 20 * n }));

  test('shows every field in which calls differ', () => {
    const { grid } = open(storeOf(CALLS));
    expect(words(visibleRows(grid)[0]!)).toEqual([
      '1', 'bessel, line 3', '2', '0.0 µs', '30 ns', 'MainThread', ''
    ]);
    expect(words(visibleRows(grid)[1]!).slice(1)).toEqual([
      'lookup, model.py:12', '', '0.0 µs', '10 ns', 'worker-1', 'ValueError: no luck'
    ]);
    expect(words(visibleRows(grid)[3]!)[1]).toBe('unknown site');
  });

  test('filters calls that returned NaN or infinity, and jumps to the first for finite arguments', () => {
    const store = storeOf(CALLS, { notFinite: new Map([[0, true], [2, false], [3, false]]) });
    const { table, grid } = open(store);
    const find = (text: string) =>
      [...table.filters.node.querySelectorAll<HTMLElement>('label, button')].find(each =>
        each.textContent!.includes(text)
      )!;
    find('NaN or infinity').querySelector('input')!.click();
    expect(numbers(grid)).toEqual([0, 2, 3]);
    store.narrow({ ...EVERYTHING, errors: true });
    find('Jump to first').click();
    expect([store.selected, store.filter]).toEqual([2, EVERYTHING]);
  });

  test('has no filter of NaN where no call returned it', () => {
    const { table } = open(storeOf(CALLS));
    const shown = [...table.filters.node.children].filter(each => !(each as HTMLElement).hidden);
    expect(shown.map(each => each.textContent).join()).not.toContain('NaN');
    expect(shown.map(each => each.textContent).join()).not.toContain('Jump');
  });

  test('shows NaN and infinite values in red', () => {
    const samples = new Map([[0, '[1, -inf, …] → nan'], [2, 'NaN or infinity'], [3, 'banana → 1']]);
    const { grid } = open(storeOf(CALLS, { samples }));
    const red = visibleRows(grid).map(row =>
      [...row.querySelectorAll('.jaxcb-not-finite')].map(each => each.textContent)
    );
    expect(red).toEqual([['-inf', 'nan'], [], ['NaN or infinity'], []]);
    expect(words(visibleRows(grid)[0]!).at(-1)).toBe('[1, -inf, …] → nan');
  });

  test('is sorted as an earlier table of the cell was', () => {
    const store = storeOf(CALLS);
    const { grid } = open(store);
    const duration = grid.querySelector<HTMLElement>('.jaxcb-table-duration button')!;
    duration.click();
    duration.click();
    const next = storeOf(CALLS);
    next.layout = store.layout;
    const sorted = open(next).grid;
    expect(numbers(sorted)).toEqual([0, 2, 1, 3]);
    expect(sorted.querySelector('.jaxcb-table-duration')!.ariaSort).toBe('descending');
  });

  const titles = (grid: Element) =>
    [...grid.querySelectorAll('[role=columnheader]')].map(title => title.textContent);
  const ONE = { sites: ['bessel, line 3'], threads: ['MainThread'], errors: [] };

  test('shows no column or filter for a field in which all calls are equal', () => {
    const { table, grid } = open(storeOf([{ start: 0 }, { start: 10 }], ONE));
    expect(titles(grid)).toEqual(['#', 'Start', 'Duration']);
    expect(grid.getAttribute('aria-colcount')).toBe('3');
    expect(table.filters.node.querySelectorAll('label:not([hidden])')).toHaveLength(0);
  });

  test('shows a column as soon as calls differ in it', () => {
    const store = storeOf([{ start: 0 }], ONE);
    const { table, grid } = open(store);
    store.calls.append(columns([{ start: 10, element: 4 }]));
    store.grown();
    frames.splice(0).forEach(frame => frame(0));
    expect(titles(grid)).toEqual(['#', 'Element', 'Start', 'Duration']);
    store.relabel({ ...store.labels, threads: ['MainThread', 'worker-1'] });
    expect(titles(grid)).toEqual(['#', 'Element', 'Start', 'Duration', 'Thread']);
    expect(words(visibleRows(grid)[1]!).at(-1)).toBe('MainThread');
    expect(table.filters.node.querySelectorAll('label:not([hidden])')).toHaveLength(1);
  });

  test('shows sample values if there are any', () => {
    const { grid } = open(storeOf(CALLS, { samples: new Map([[2, '1 → 0.5']]) }));
    expect(words(visibleRows(grid)[2]!).at(-1)).toBe('1 → 0.5');
    expect(titles(grid).at(-1)).toBe('Values');
    expect(titles(open(storeOf(CALLS)).grid).at(-1)).toBe('Error');
  });

  test('shows markup as plain text', () => {
    const { grid } = open(storeOf(CALLS, { sites: ['<img src=x>, line 3'] }));
    expect(grid.querySelector('img')).toBeNull();
  });

  test('creates elements for only a few of many rows', () => {
    const { grid } = open(storeOf(many(100_000)));
    expect(visibleRows(grid).length).toBeLessThan(20);
    expect(grid.getAttribute('aria-rowcount')).toBe('100001');
    expect(visibleRows(grid)[0]!.getAttribute('aria-rowindex')).toBe('2');
  });

  test('shows other rows when scrolled', () => {
    const { grid } = open(storeOf(many(1000)));
    grid.scrollTop = 500 * ROW;
    grid.dispatchEvent(new Event('scroll'));
    expect(numbers(grid)).toContain(505);
    expect(numbers(grid)).not.toContain(0);
  });

  test('sorts by a column in ascending, then in descending order', () => {
    const { grid } = open(storeOf(CALLS));
    const title = () => grid.querySelectorAll<HTMLElement>('[role=columnheader]')[4]!;
    expect(title().getAttribute('aria-sort')).toBe('none');
    title().querySelector('button')!.click();
    expect(numbers(grid)).toEqual([1, 3, 2, 0]);
    expect(title().getAttribute('aria-sort')).toBe('ascending');
    title().querySelector('button')!.click();
    expect(numbers(grid)).toEqual([0, 2, 1, 3]);
    expect(title().getAttribute('aria-sort')).toBe('descending');
  });

  test('sorts by every column', () => {
    const smaller = { ...VARIANT, operands: [[[2], 'float32']] as const };
    const samples = new Map([[0, 'b'], [2, 'a']]);
    const { grid } = open(storeOf(CALLS, { variants: [VARIANT, smaller], samples }));
    const orders = [...grid.querySelectorAll('[role=columnheader] button')].map(button => {
      (button as HTMLElement).click();
      return numbers(grid).join('');
    });
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

  test('filters with its controls, and counts the calls that pass', () => {
    const store = storeOf(CALLS);
    const { table, grid } = open(store);
    const [site, thread] = table.filters.node.querySelectorAll('select');
    const count = () => table.filters.node.querySelector('output')!.textContent;
    expect(count()).toBe('4 calls');
    choose(site!, '0');
    expect([numbers(grid), count(), store.filter.site]).toEqual([[0, 2], '2 of 4 calls', 0]);
    choose(site!, '');
    choose(thread!, '1');
    expect(numbers(grid)).toEqual([1]);
    choose(thread!, '');
    table.filters.node.querySelector<HTMLElement>('[type=checkbox]')!.click();
    expect([numbers(grid), store.filter.errors]).toEqual([[1], true]);
  });

  test('a call that the user stopped is not marked, and there is nothing to filter', () => {
    const { table, grid } = open(storeOf(CALLS, { errors: ['stopped by you'] }));
    const stopped = visibleRows(grid)[1]!;
    expect(words(stopped).at(-1)).toBe('stopped by you');
    expect(stopped.classList.contains('jaxcb-table-failed')).toBe(false);
    const failedOnly = table.filters.node.querySelector('[type=checkbox]')!.parentElement!;
    expect(failedOnly.hidden).toBe(true);
  });

  test('controls reflect a filter set by another view', () => {
    const store = storeOf(CALLS);
    const { table } = open(store);
    store.narrow({ ...EVERYTHING, site: 1, thread: 1, errors: true, text: 'luck' });
    const [site, thread] = table.filters.node.querySelectorAll('select');
    expect([site!.value, thread!.value]).toEqual(['1', '1']);
    const [text, errors] = table.filters.node.querySelectorAll('input');
    expect([text!.value, errors!.checked]).toEqual(['luck', true]);
  });

  test('the options of a filter have their numbers of calls', async () => {
    const store = storeOf(CALLS);
    const { table } = open(store, await figuresOf(store));
    const texts = [...table.filters.node.querySelectorAll('option')].map(each => each.textContent);
    expect(texts).toEqual([
      'all sites', 'bessel, line 3 (2)', 'lookup, model.py:12 (1)',
      'all threads', 'MainThread (3)', 'worker-1 (1)'
    ]);
  });

  test('a single call has no filters', () => {
    expect(open(storeOf(CALLS.slice(0, 1))).table.filters.node.hidden).toBe(true);
    expect(open(storeOf(CALLS.slice(0, 2))).table.filters.node.hidden).toBe(false);
  });

  test('searches while the user types', () => {
    const store = storeOf(CALLS);
    const { table, grid } = open(store);
    const search = table.filters.node.querySelector<HTMLInputElement>('[type=search]')!;
    search.value = 'luck';
    search.dispatchEvent(new Event('input'));
    expect([numbers(grid), store.filter.text]).toEqual([[1], 'luck']);
  });

  test('shows a range of durations as a chip that removes it', () => {
    const store = storeOf(CALLS);
    const { table, grid } = open(store);
    const chip = table.filters.node.querySelector<HTMLElement>('.jaxcb-table-chip')!;
    expect(chip.hidden).toBe(true);
    store.narrow({ ...EVERYTHING, durations: [20, 31], site: 0 });
    expect([chip.hidden, chip.textContent, numbers(grid)]).toEqual([false, '20 ns – 31 ns✕', [0, 2]]);
    chip.focus();
    chip.click();
    expect([chip.hidden, store.filter]).toEqual([true, { ...EVERYTHING, site: 0 }]);
    expect(document.activeElement).toBe(table.filters.node.querySelector('[type=search]'));
  });

  test('one button clears every filter, and is hidden without filters', () => {
    const store = storeOf(CALLS);
    const { table } = open(store);
    const clear = [...table.filters.node.querySelectorAll('button')].at(-1)!;
    expect([clear.textContent, clear.hidden]).toEqual(['Clear filters', true]);
    store.narrow({ site: 0, thread: 0, errors: false, notFinite: false, durations: [0, 99], text: 'bessel' });
    expect(clear.hidden).toBe(false);
    clear.click();
    expect([clear.hidden, store.filter]).toEqual([true, EVERYTHING]);
  });

  test('shows a note if no call passes the filter, with a button that clears it', () => {
    const store = storeOf(CALLS);
    const { table, grid } = open(store);
    const note = table.node.querySelector<HTMLElement>('.jaxcb-table-empty')!;
    expect([grid.hidden, note.hidden]).toEqual([false, true]);
    store.narrow({ ...EVERYTHING, site: 0, thread: 1 });
    expect([grid.hidden, note.hidden]).toEqual([true, false]);
    note.querySelector('button')!.click();
    expect([grid.hidden, note.hidden, store.filter]).toEqual([false, true, EVERYTHING]);
  });

  test('a click on a row selects its call', () => {
    const store = storeOf(CALLS);
    const { grid } = open(store);
    (visibleRows(grid)[2]!.firstElementChild as HTMLElement).click();
    expect(store.selected).toBe(2);
    expect(visibleRows(grid)[2]!.getAttribute('aria-selected')).toBe('true');
    expect(document.activeElement).toBe(grid);
  });

  test('scrolls to the row that another view selects, in any sort order', () => {
    const store = storeOf(many(1000));
    const { grid } = open(store);
    store.select(700);
    expect(numbers(grid)).toContain(700);
    const active = grid.getAttribute('aria-activedescendant')!;
    expect(document.getElementById(active)!.dataset.row).toBe('700');
    const number = grid.querySelector<HTMLElement>('[role=columnheader] button')!;
    number.click();
    number.click();
    store.select(999);
    expect(numbers(grid)[0]).toBe(999);
  });

  test('keys move the selection', () => {
    const store = storeOf(many(1000));
    const { grid } = open(store);
    const keys = ['ArrowDown', 'ArrowDown', 'PageDown', 'End', 'ArrowDown', 'PageUp', 'ArrowUp'];
    const rows = keys.map(key => (press(grid, key), store.selected));
    expect(rows).toEqual([0, 1, 11, 999, 999, 989, 988]);
    press(grid, 'Home');
    expect(store.selected).toBe(0);
    press(grid, 'Escape');
    expect(store.selected).toBeNull();
    press(grid, 'Enter');
    expect(store.selected).toBe(0);
  });

  test('ignores unknown keys', () => {
    const { grid } = open(storeOf(CALLS));
    expect(['Tab', 'a'].map(key => press(grid, key))).toEqual([true, true]);
    expect(press(grid, 'ArrowDown')).toBe(false);
  });

  test('keys on a column title do not move the selection', () => {
    const store = storeOf(CALLS);
    const { grid } = open(store);
    const title = grid.querySelector('[role=columnheader] button')!;
    title.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));
    expect(store.selected).toBeNull();
  });

  test('adds new calls once per frame', () => {
    const store = storeOf(CALLS);
    const { grid } = open(store);
    store.calls.append(columns([{ start: 40 }]));
    store.grown();
    store.grown();
    expect(frames).toHaveLength(1);
    frames[0]!(0);
    expect(numbers(grid)).toEqual([0, 1, 2, 3, 4]);
  });

  test('sorts new calls in among the others', () => {
    const store = storeOf(CALLS);
    const { grid } = open(store);
    grid.querySelectorAll<HTMLElement>('[role=columnheader] button')[4]!.click();
    store.calls.append(columns([{ start: 40, duration: 15 }]));
    store.grown();
    frames[0]!(0);
    expect(numbers(grid)).toEqual([1, 3, 4, 2, 0]);
  });

  test('updates when the labels change', () => {
    const store = storeOf(CALLS);
    const { table, grid } = open(store);
    store.relabel({ ...store.labels, sites: ['other, line 9', 'third, line 10'] });
    expect(words(visibleRows(grid)[0]!)[1]).toBe('other, line 9');
    expect(table.filters.node.querySelector('select')!.textContent).toContain('other, line 9');
  });

  test('ignores changes after disposal', () => {
    const store = storeOf(CALLS);
    const { table, grid } = open(store);
    table.dispose();
    store.select(1);
    store.grown();
    expect(frames).toHaveLength(0);
    expect(grid.querySelector('[aria-selected=true]')).toBeNull();
  });
});

function choose(select: HTMLSelectElement, value: string): void {
  select.value = value;
  select.dispatchEvent(new Event('change'));
}
