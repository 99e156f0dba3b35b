import { expect, test } from 'vitest';
import { EVERYTHING } from '../../../../src/view/data/store.js';
import { Order, sorted } from '../../../../src/view/calls/table/order.js';
import { storeOf } from '../stores.js';

test('has no place for a row that the filter hides', () => {
  const store = storeOf([{ start: 0 }, { start: 20, thread: 1 }, { start: 40, thread: 1 }]);
  const order = new Order(store);
  const places = () => (order.rebuild(), [0, 1, 2].map(row => order.place(row)));
  expect(places()).toEqual([0, 1, 2]);
  store.narrow({ ...EVERYTHING, thread: 1 });
  expect(places()).toEqual([-1, 0, 1]);
});

test.each([
  [[3, 0, 0.5, 3, 1e300, Infinity], [1, 2, 0, 3, 4, 5], [5, 4, 0, 3, 2, 1]],
  [[1 + 2 ** -52, 1, 1], [1, 2, 0], [0, 1, 2]], // they differ only in the last bit
  [[], [], []]
])('sorts rows by keys %o, stably also in descending order', (keys, ascending, descending) => {
  const sort = (isDescending: boolean) =>
    [...sorted(Uint32Array.from(keys.keys()), row => keys[row]!, isDescending)];
  expect([sort(false), sort(true)]).toEqual([ascending, descending]);
});

test('sorts many of the rows as Array.sort does', () => {
  const many = Uint32Array.from({ length: 5000 }, (_, n) => 3 * n);
  const key = (row: number) => ((row * 7919) % 1009) * 1e7;
  expect([...sorted(many, key, false)]).toEqual([...many].sort((a, b) => key(a) - key(b)));
});
