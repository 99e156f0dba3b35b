import { describe, expect, test } from 'vitest';
import { labelsOf } from '../../../src/view/data/labels.js';
import { type Change, EVERYTHING, type Filter } from '../../../src/view/data/store.js';
import type { Facts, Measured } from '../../../src/view/data/schema.js';
import { columns, storeOf } from '../calls/stores.js';

const CALLS = [
  { start: 0, variant: 0, thread: 0 },
  { start: 10, variant: 1, thread: 1, error: 1 },
  { start: 20, variant: 9, thread: 1 }
];

describe('Store', () => {
  test('notifies a listener of every change until it is removed', () => {
    const store = storeOf(CALLS);
    const received: Change[] = [];
    const stop = store.on(change => received.push(change));
    store.grown();
    store.relabel(store.labels);
    store.select(1);
    store.narrow(EVERYTHING);
    stop();
    store.select(2);
    expect(received).toEqual(['calls', 'labels', 'selected', 'filter']);
  });

  test('does not notify listeners if the selection is unchanged', () => {
    const store = storeOf(CALLS);
    store.select(1);
    const received: Change[] = [];
    store.on(change => received.push(change));
    store.select(1);
    expect(received).toEqual([]);
  });

  test('selects nothing if the row does not exist', () => {
    const store = storeOf(CALLS);
    for (const row of [3, -1, NaN]) {
      store.select(0);
      store.select(row);
      expect(store.selected).toBeNull();
    }
  });

  test('a listener that removes itself does not affect the others', () => {
    const store = storeOf(CALLS);
    const received: string[] = [];
    const stop = store.on(() => stop());
    store.on(() => received.push('second'));
    store.grown();
    expect(received).toEqual(['second']);
  });

  test('filters by site, thread and failure', () => {
    const store = storeOf(CALLS);
    const shown = () => [0, 1, 2].filter(row => store.shows(row));
    expect(shown()).toEqual([0, 1, 2]);
    store.narrow({ ...EVERYTHING, site: 1 });
    expect(shown()).toEqual([1]);
    store.narrow({ ...EVERYTHING, thread: 1 });
    expect(shown()).toEqual([1, 2]);
    store.narrow({ ...EVERYTHING, errors: true });
    expect(shown()).toEqual([1]);
    store.narrow({ ...EVERYTHING, site: 0, thread: 1 });
    expect(shown()).toEqual([]);
  });

  test('filters from a duration to before another', () => {
    const store = storeOf([10, 20, 30, 40].map((duration, n) => ({ start: 50 * n, duration })));
    store.narrow({ ...EVERYTHING, durations: [20, 40] });
    expect([0, 1, 2, 3].filter(row => store.shows(row))).toEqual([1, 2]);
  });

  test('filters calls that arrive, and labels that change, after the filter was set', () => {
    const store = storeOf([], { threads: ['MainThread'] });
    store.narrow({ ...EVERYTHING, text: 'worker' });
    store.calls.append(columns(CALLS));
    expect([0, 1, 2].filter(row => store.shows(row))).toEqual([]);
    store.relabel({ ...store.labels, threads: ['MainThread', 'worker-1'] });
    expect([0, 1, 2].filter(row => store.shows(row))).toEqual([1, 2]);
  });

  test('showsAll is false if any filter is set', () => {
    const store = storeOf(CALLS);
    expect(store.showsAll()).toBe(true);
    const parts: Partial<Filter>[] = [
      { site: 0 }, { thread: 0 }, { errors: true }, { durations: [0, 1] }, { text: 'a' }
    ];
    for (const part of parts) {
      store.narrow({ ...EVERYTHING, ...part });
      expect(store.showsAll()).toBe(false);
    }
  });

  test('has no site for an unknown variant', () => {
    expect([0, 1, 2].map(row => storeOf(CALLS).site(row))).toEqual([0, 1, null]);
  });

  test('counts the shown calls, with the total if some are hidden', () => {
    expect(storeOf(CALLS).countWords(3)).toBe('3 calls');
    expect(storeOf(CALLS).countWords(1)).toBe('1 of 3 calls');
  });

  test('labels map variants to sites, rows to samples, and have the timed compilations', () => {
    const site = (name: string, variants: number, ...sample_rows: number[]) => ({
      function: name,
      where: 'line 3',
      sample_rows,
      not_finite_rows: [],
      passed_on_rows: [],
      sample_values: [['element 2: 1 → 0.5', false]],
      shapes: Array.from({ length: variants }, () => ({}))
    });
    const facts = { sites: [site('a', 2, 7), site('b', 0, -1), site('c', 1)] } as unknown as Facts;
    const measured = {
      threads: ['main'],
      errors: ['E'],
      compilations: [{ program: 'jit_f', start_ns: 0 }, { program: 'jit_g', start_ns: null }, {}]
    } as unknown as Measured;
    const labels = labelsOf(facts, measured);
    expect(labels.sites).toEqual(['a, line 3', 'b, line 3', 'c, line 3']);
    expect(labels.siteOfVariant).toEqual([0, 0, 2]);
    expect(labels.variants).toHaveLength(3);
    expect([labels.threads, labels.errors]).toEqual([['main'], ['E']]);
    expect([...labels.samples]).toEqual([[7, 'element 2: 1 → 0.5']]);
    expect(labels.compilations.map(one => one.program)).toEqual(['jit_f']);
  });
});
