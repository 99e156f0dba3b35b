import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { EVERYTHING, type Store } from '../../../../src/view/data/store.js';
import { Distribution } from '../../../../src/view/calls/distribution/distribution.js';
import { figuresOf } from '../../../../src/view/calls/distribution/figures.js';
import { storeOf } from '../stores.js';

const CALLS = [
  ...[10_000, 20_000, 20_000, 20_100, 300_000].map((duration, n) => ({ start: n, duration })),
  { start: 10, duration: 50_000, variant: 1, thread: 1, error: 1 },
  { start: 11, duration: 60_000, variant: 1 }
];
let opened: Distribution | null = null;

beforeEach(() => {
  const box = { left: 0, width: 1000, bottom: 24 } as DOMRect;
  vi.spyOn(Element.prototype, 'getBoundingClientRect').mockReturnValue(box);
});

afterEach(() => {
  opened?.dispose();
  opened = null;
  vi.restoreAllMocks();
  document.body.replaceChildren();
});

async function open(store: Store): Promise<HTMLElement> {
  opened = new Distribution(store, await figuresOf(store), '7 calls');
  document.body.append(opened.node);
  return opened.node;
}

const rows = (node: Element) => [...node.querySelectorAll('.jaxcb-distribution-row')];
const texts = (row: Element) => [...row.children].map(cell => cell.textContent);
const histogram = (node: Element, nth = 0) => node.querySelectorAll<HTMLElement>('[role=slider]')[nth]!;
const press = (target: HTMLElement, key: string, shiftKey = false) =>
  target.dispatchEvent(new KeyboardEvent('keydown', { key, shiftKey, cancelable: true }));

function point(target: HTMLElement, type: string, clientX: number): void {
  target.dispatchEvent(new MouseEvent(type, { button: 0, clientX, clientY: 5 }));
}

describe('Distribution', () => {
  test('shows number, minimum, median, p95 and maximum of the calls of each site', async () => {
    const node = await open(storeOf(CALLS));
    expect(rows(node).map(texts)).toEqual([
      ['bessel, line 3', '5', '', '10 µs', '20 µs', '244 µs', '300 µs', ''],
      ['lookup, model.py:12', '2', '✕ 1', '50 µs', '55 µs', '59.5 µs', '60 µs', '']
    ]);
    expect(node.querySelector('p')!.textContent).toBe(
      '7 calls · 480 µs in host functions, summed over 2 threads'
    );
  });

  test('shows no column of failures, and no number of threads, if there are none', async () => {
    const node = await open(storeOf(CALLS.slice(0, 5)));
    const titles = [...node.querySelectorAll('[role=columnheader]')].map(each => each.textContent);
    expect(titles.slice(0, 6)).toEqual(['Site', 'Calls', 'Min', 'Median', 'p95', 'Max']);
    expect(node.querySelector('p')!.textContent).toBe('7 calls · 370 µs in host functions');
  });

  test('shows only the total if each site has one call', async () => {
    const node = await open(storeOf(CALLS.slice(4, 6)));
    expect(node.querySelector<HTMLElement>('[role=table]')!.hidden).toBe(true);
  });

  test('the maximum selects the slowest call', async () => {
    const store = storeOf(CALLS);
    const node = await open(store);
    rows(node)[0]!.querySelector<HTMLElement>('.jaxcb-link')!.click();
    expect(store.selected).toBe(4);
  });

  test('the name of a site filters by it, and again shows all sites', async () => {
    const store = storeOf(CALLS);
    const node = await open(store);
    const name = rows(node)[1]!.querySelector('button')!;
    name.click();
    expect([store.filter.site, name.ariaPressed]).toEqual([1, 'true']);
    name.click();
    expect([store.filter.site, name.ariaPressed]).toEqual([null, 'false']);
  });

  test('shows the sites that took longest, in program order, and the others on request', async () => {
    const sites = Array.from({ length: 12 }, (_, n) => `f${n}, line ${n}`);
    const calls = sites.map((_, n) => ({ start: n, variant: n, duration: n === 3 ? 99 : 20 - n }));
    const labels = { sites, colours: sites.map(() => 0), siteOfVariant: sites.map((_, n) => n) };
    const node = await open(storeOf(calls, labels));
    const names = () => rows(node).map(row => texts(row)[0]!.split(',')[0]);
    expect(names()).toEqual(['f0', 'f1', 'f2', 'f3', 'f4', 'f5', 'f6', 'f7']);
    const more = node.querySelector<HTMLElement>('.jaxcb-distribution-more')!;
    expect(more.textContent).toBe('Show all 12 sites');
    more.click();
    expect(names()).toHaveLength(12);
    expect(more.isConnected).toBe(false);
  });

  test('shows markup in a name as plain text', async () => {
    const node = await open(storeOf(CALLS, { sites: ['<b>f</b>, line 3', 'g'] }));
    expect(node.querySelector('b')).toBeNull();
    expect(texts(rows(node)[0]!)[0]).toBe('<b>f</b>, line 3');
  });
});

describe('a histogram', () => {
  test('filters the calls of its site by the range of the bar that is clicked', async () => {
    const store = storeOf(CALLS);
    const bars = histogram(await open(store));
    const bins = Number(bars.ariaValueMax) + 1;
    const at = (1000 * (Number(bars.ariaValueNow) + 0.5)) / bins;
    point(bars, 'pointerdown', at);
    point(bars, 'pointerup', at);
    expect(store.filter).toEqual({ ...EVERYTHING, site: 0, durations: [20_000, 25_000] });
    expect([0, 1, 2, 3, 4, 5].filter(row => store.shows(row))).toEqual([1, 2, 3]);
    point(bars, 'pointerdown', at);
    point(bars, 'pointerup', at);
    expect(store.filter.durations).toBeNull();
  });

  test('filters by all bars over which the pointer is dragged', async () => {
    const store = storeOf(CALLS);
    const bars = histogram(await open(store));
    point(bars, 'pointerdown', 999);
    point(bars, 'pointermove', 1);
    point(bars, 'pointerup', 1);
    const [from, to] = store.filter.durations!;
    expect([from <= 10_000, to > 300_000]).toEqual([true, true]);
  });

  test('filters by keyboard, with Shift by a range', async () => {
    const store = storeOf(CALLS);
    const bars = histogram(await open(store));
    expect(bars.ariaValueText).toBe('20 µs – 25 µs: 3 of 5 calls');
    press(bars, 'ArrowLeft');
    expect(bars.ariaValueText).toBe('16 µs – 20 µs: 0 calls');
    press(bars, 'Enter');
    expect(store.filter.durations).toBeNull(); // no call would be left
    press(bars, 'ArrowRight', true);
    press(bars, ' ');
    expect(store.filter.durations).toEqual([16_000, 25_000]);
    press(bars, 'Escape');
    expect(store.filter.durations).toBeNull();
    press(bars, 'ArrowLeft', true); // the range ends with a bar without calls
    press(bars, 'Enter');
    expect(store.filter.durations).toEqual([16_000, 25_000]);
    press(bars, 'End');
    expect(bars.ariaValueNow).toBe(bars.ariaValueMax);
    expect([press(bars, 'Tab'), press(bars, 'Home')]).toEqual([true, false]);
  });

  test('of a single site filters by durations alone', async () => {
    const store = storeOf(CALLS.slice(0, 5));
    press(histogram(await open(store)), 'Enter');
    expect(store.filter).toEqual({ ...EVERYTHING, durations: [20_000, 25_000] });
  });

  test('dims the calls that do not pass the filter', async () => {
    const store = storeOf(CALLS);
    const node = await open(store);
    const drawn = (nth: number) =>
      [...histogram(node, nth).querySelectorAll('path')].map(path => path.getAttribute('d')!);
    expect(drawn(0)[0]).toBe(drawn(0)[1]);
    store.narrow({ ...EVERYTHING, errors: true });
    expect(drawn(0)[1]).toBe('');
    expect(drawn(1)[1]).not.toBe('');
    expect(drawn(1)[0]).not.toBe(drawn(1)[1]);
  });

  test('describes the bar below the pointer', async () => {
    const store = storeOf(CALLS);
    const node = await open(store);
    const box = node.querySelector<HTMLElement>('[role=tooltip]')!;
    store.narrow({ ...EVERYTHING, durations: [20_000, 20_050] });
    const bars = histogram(node);
    const at = (1000 * (Number(bars.ariaValueNow) + 0.5)) / (Number(bars.ariaValueMax) + 1);
    point(bars, 'pointermove', at);
    expect([...box.children].map(child => child.textContent)).toEqual([
      '20 µs – 25 µs', '3 of 5 calls', '2 shown'
    ]);
    point(bars, 'pointerleave', at);
    expect(box.hidden).toBe(true);
  });
});
