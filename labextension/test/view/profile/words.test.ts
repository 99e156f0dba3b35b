import { describe, expect, it } from 'vitest';

import type { Profile } from '../../../src/view/data/schema.js';
import { wallClause } from '../../../src/view/profile/words.js';

describe('wallClause', () => {
  it('names the longest kind, not the first', () => {
    const kinds = [
      { id: 'crossing', name: 'crossings', wall_ns: 2e9 },
      { id: 'host', name: 'host functions', wall_ns: 7e9 }
    ];
    const profile = { wall_ns: 10e9, kinds } as unknown as Profile;
    expect(wallClause(profile)).toBe('10 s wall time, 70 % host functions');
  });
});
