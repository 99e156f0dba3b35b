import { afterEach, beforeEach, expect, test, vi } from 'vitest';
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

async function open(store: Store) {
  const { node } = (opened = new Distribution(store, await figuresOf(store), '7 calls'));
  document.body.append(node);
  const rows = () => [...node.querySelectorAll<HTMLElement>('.jaxcb-distribution-row')];
  const [bars, other] = node.querySelectorAll<HTMLElement>('[role=slider]');
  const point = (type: string, clientX: number) =>
    bars!.dispatchEvent(new MouseEvent(type, { button: 0, clientX, clientY: 5 }));
  const middle = (1000 * (Number(bars!.ariaValueNow) + 0.5)) / (Number(bars!.ariaValueMax) + 1);
  const press = (key: string, shiftKey = false) =>
    bars!.dispatchEvent(new KeyboardEvent('keydown', { key, shiftKey, cancelable: true }));
  const texts = () => rows().map(row => [...row.children].map(cell => cell.textContent));
  return { node, rows, texts, bars: bars!, other: other!, point, middle, press };
}

test('shows number, failures, minimum, median, p95 and maximum of the calls of each site', async () => {
  const { node, texts } = await open(storeOf(CALLS, { sites: ['<b>f</b>, line 3', 'g'] }));
  expect(texts()).toEqual([
    ['<b>f</b>, line 3', '5', '', '10 µs', '20 µs', '244 µs', '300 µs', ''],
    ['g', '2', '✕ 1', '50 µs', '55 µs', '59.5 µs', '60 µs', '']
  ]);
  const words = node.querySelector('p')!.textContent;
  expect([words, node.querySelector('b')]).toEqual([
    '7 calls · 480 µs in host functions, summed over 2 threads', null
  ]);
});

test('shows no column of failures, and no number of threads, if there are none', async () => {
  const { node } = await open(storeOf(CALLS.slice(0, 5)));
  const titles = [...node.querySelectorAll('[role=columnheader]')].map(each => each.textContent);
  expect(titles.slice(0, 6)).toEqual(['Site', 'Calls', 'Min', 'Median', 'p95', 'Max']);
  expect(node.querySelector('p')!.textContent).toBe('7 calls · 370 µs in host functions');
});

test('shows only the total if each site has one call', async () => {
  const { node } = await open(storeOf(CALLS.slice(4, 6)));
  expect(node.querySelector<HTMLElement>('[role=table]')!.hidden).toBe(true);
});

test('the maximum selects the slowest call, the name filters by the site, and again does not', async () => {
  const store = storeOf(CALLS);
  const { rows } = await open(store);
  rows()[0]!.querySelector<HTMLElement>('.jaxcb-link')!.click();
  expect(store.selected).toBe(4);
  const name = rows()[1]!.querySelector('button')!;
  const chosen = [0, 1].map(() => (name.click(), [store.filter.site, name.ariaPressed]));
  expect(chosen).toEqual([[1, 'true'], [null, 'false']]);
});

test('shows the sites that took longest, in program order, and the others on request', async () => {
  const sites = Array.from({ length: 12 }, (_, n) => `f${n}, line ${n}`);
  const calls = sites.map((_, n) => ({ start: n, variant: n, duration: n === 9 ? 99 : 20 - n }));
  const labels = { sites, colours: sites.map(() => 0), siteOfVariant: sites.map((_, n) => n) };
  const { node, texts } = await open(storeOf(calls, labels));
  const names = () => texts().map(([name]) => name!.split(',')[0]).join(' ');
  expect(names()).toBe('f0 f1 f2 f3 f4 f5 f6 f9');
  const more = node.querySelector<HTMLElement>('.jaxcb-distribution-more')!;
  expect(more.textContent).toBe('Show all 12 sites');
  more.click();
  expect([texts().length, more.isConnected]).toEqual([12, false]);
});

test('a bar that is clicked filters the calls of its site by its range, and again does not', async () => {
  const store = storeOf(CALLS);
  const { middle, point } = await open(store);
  const click = () => (point('pointerdown', middle), point('pointerup', middle));
  click();
  expect(store.filter).toEqual({ ...EVERYTHING, site: 0, durations: [20_000, 25_000] });
  click();
  expect(store.filter.durations).toBeNull();
});

test('a drag filters by all bars over which the pointer goes', async () => {
  const store = storeOf(CALLS);
  const { point } = await open(store);
  point('pointerdown', 999);
  point('pointermove', 1);
  point('pointerup', 1);
  const [from, to] = store.filter.durations!;
  expect([from <= 10_000, to > 300_000]).toEqual([true, true]);
});

test('keys filter by a bar, with Shift by a range, unless no call would be left', async () => {
  const store = storeOf(CALLS);
  const { bars, press } = await open(store);
  expect(bars.ariaValueText).toBe('20 µs – 25 µs: 3 of 5 calls');
  press('ArrowLeft');
  expect(bars.ariaValueText).toBe('16 µs – 20 µs: 0 calls');
  press('Enter');
  expect(store.filter.durations).toBeNull();
  press('ArrowRight', true);
  press(' ');
  expect(store.filter.durations).toEqual([16_000, 25_000]);
  press('Escape');
  expect(store.filter.durations).toBeNull();
  press('End');
  expect(bars.ariaValueNow).toBe(bars.ariaValueMax);
  expect([press('Tab'), press('Home')]).toEqual([true, false]);
});

test('the bars of a single site filter by durations alone', async () => {
  const store = storeOf(CALLS.slice(0, 5));
  (await open(store)).press('Enter');
  expect(store.filter).toEqual({ ...EVERYTHING, durations: [20_000, 25_000] });
});

test('bars dim the calls that do not pass the filter', async () => {
  const store = storeOf(CALLS);
  const { bars, other } = await open(store);
  const drawn = (node: Element) => [...node.querySelectorAll('path')].map(path => path.getAttribute('d')!);
  expect(drawn(bars)[0]).toBe(drawn(bars)[1]);
  store.narrow({ ...EVERYTHING, errors: true });
  expect([drawn(bars)[1], drawn(other)[1] === '', drawn(other)[0] === drawn(other)[1]]).toEqual(['', false, false]);
});

test('a bar below the pointer is described', async () => {
  const store = storeOf(CALLS);
  const { middle, node, point } = await open(store);
  const box = node.querySelector<HTMLElement>('[role=tooltip]')!;
  store.narrow({ ...EVERYTHING, durations: [20_000, 20_050] });
  point('pointermove', middle);
  expect([...box.children].map(child => child.textContent)).toEqual(['20 µs – 25 µs', '3 of 5 calls', '2 shown']);
  point('pointerleave', middle);
  expect(box.hidden).toBe(true);
});
