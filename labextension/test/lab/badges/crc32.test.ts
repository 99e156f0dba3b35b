import { crc32 as zlibs } from 'node:zlib';
import { expect, test } from 'vitest';
import { crc32 } from '../../../src/lab/badges/crc32.js';

test('crc32 computes the check value of the CRC-32 standard', () => {
  expect(crc32('123456789')).toBe(0xcbf43926);
});

test('crc32 encodes text as UTF-8, as Python does', () => {
  expect(crc32('µ → 😀')).toBe(zlibs(Buffer.from('µ → 😀', 'utf8')));
});

test('crc32 is never negative', () => {
  expect(crc32('a')).toBe(0xe8b7be43);
});
