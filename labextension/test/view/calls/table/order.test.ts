import { describe, expect, it } from 'vitest';

import { EVERYTHING } from '../../../../src/view/data/store.js';
import { Order } from '../../../../src/view/calls/table/order.js';
import { storeOf } from '../stores.js';

describe('Order', () => {
  it('has no place for a row that the filter hides', () => {
    const store = storeOf([{ start: 0 }, { start: 20, thread: 1 }, { start: 40, thread: 1 }]);
    const order = new Order(store);
    expect([0, 1, 2].map(row => order.place(row))).toEqual([0, 1, 2]);
    store.narrow({ ...EVERYTHING, thread: 1 });
    order.rebuild();
    expect([0, 1, 2].map(row => order.place(row))).toEqual([-1, 0, 1]);
  });
});
