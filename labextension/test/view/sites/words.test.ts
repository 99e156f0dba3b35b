import { describe, expect, it } from 'vitest';

import { errorWords } from '../../../src/view/sites/words.js';

describe('errorWords', () => {
  it('is the first line, but the last one of a traceback', () => {
    expect(errorWords('ValueError: no luck\nnote: try again', 40)).toBe('ValueError: no luck');
    expect(errorWords('Traceback (most recent call last):\n  f()\nKeyError: 3\n', 40)).toBe('KeyError: 3');
  });
});
