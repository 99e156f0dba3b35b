/** Reads the notice that no host call of a running cell returns. */

import { objectOf, or, text, type Read } from './fields.js';
import { SENTENCE } from './known.js';

const LONGEST = 20_000; // characters of text or stacks

const readHang = objectOf({
  title: or(text(SENTENCE), ''), // empty: the cell goes on
  text: or(text(LONGEST), ''), // a paragraph on each host call
  stacks: or(text(LONGEST), '')
});
export interface Hang extends Read<typeof readHang> {}

/** The notice; null if the cell goes on. Throws `BadRecording` if the data is malformed. */
export function parseHang(data: unknown): Hang | null {
  const hang = readHang(data, 'hang');
  return hang.title ? hang : null;
}
