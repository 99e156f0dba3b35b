/** Searches the fields of host calls for words. */

import type { Calls } from './columns.js';
import type { Labels } from './labels.js';

/** Whether a call passes. */
export type Test = (row: number) => boolean;

const WORD = /(?:line|element|call)\s+\d+|\S+/giu; // "line 3" is one word
const NUMBERED = /^(?:(element|call)\s+)?(\d+)$/iu;

/**
 * One test for each word of `text`, for its occurrence in a call's function, line, thread, error or
 * sample values, in any case.
 *
 * Digits match whole numbers only: "line 3" does not find line 31. A number also finds the element
 * of that number; "call 12" finds the twelfth call.
 */
export function searching(text: string, labels: Labels, calls: Calls): Test[] {
  return (text.match(WORD) ?? []).map(word => occurrence(word, labels, calls));
}

function occurrence(word: string, labels: Labels, calls: Calls): Test {
  const found = finder(word);
  const sites = labels.sites.map(found);
  const variants = labels.siteOfVariant.map(site => sites[site]);
  const threads = labels.threads.map(found);
  const errors = [false, ...labels.errors.map(found)];
  const samples = new Set([...labels.samples].filter(([, text]) => found(text)).map(([row]) => row));
  const [, kind, digits] = NUMBERED.exec(word) ?? [];
  const number = digits === undefined ? NaN : Number(digits);
  if (kind?.toLowerCase() === 'call') {
    return row => row + 1 === number;
  }
  return row =>
    variants[calls.variant(row)] === true ||
    threads[calls.thread(row)] === true ||
    errors[calls.error(row)] === true ||
    calls.element(row) === number ||
    samples.has(row);
}

/** Whether a text contains `word`, with no other digits around its digits. */
function finder(word: string): (text: string) => boolean {
  const escaped = word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/\s+/g, '\\s+');
  const before = /^\d/.test(word) ? '(?<![\\d.])' : '';
  const after = /\d$/.test(word) ? '(?!\\d|\\.\\d)' : '';
  const pattern = new RegExp(`${before}${escaped}${after}`, 'iu');
  return text => pattern.test(text);
}
