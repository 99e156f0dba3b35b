import { crc32 as zlibs } from 'node:zlib';
import { expect, test } from 'vitest';
import { crc32 } from '../../../src/lab/badges/crc32.js';

test('the check value of the CRC-32 standard comes out', () => {
  expect(crc32('123456789')).toBe(0xcbf43926);
});

test('text that is not ASCII counts as UTF-8, as in Python', () => {
  expect(crc32('µ → 😀')).toBe(zlibs(Buffer.from('µ → 😀', 'utf8')));
});

test('it is never negative', () => {
  expect(crc32('a')).toBe(0xe8b7be43);
});
