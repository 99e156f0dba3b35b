import { describe, expect, it } from 'vitest';

import { coloursOf } from '../../src/view/colours.js';
import { aSite } from './recordings.js';

const SITES = Array.from({ length: 20 }, (_, line) => aSite({ line, where: `line ${line}` }));

describe('the colors of sites', () => {
  it('are distinct while unused colors remain', () => {
    expect(new Set(coloursOf(SITES.slice(0, 8))).size).toBe(8);
    expect(new Set(coloursOf(SITES))).toEqual(new Set([0, 1, 2, 3, 4, 5, 6, 7]));
  });

  it('do not depend on the order of the sites', () => {
    const few = SITES.filter((_, place) => place % 3 === 0); // some with equal hashes
    expect(coloursOf([...few].reverse())).toEqual(coloursOf(few).reverse());
  });
});
