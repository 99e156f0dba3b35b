/** Shows NaN and infinite values in red. */

import { notFiniteParts } from '../data/not-finite.js';
import phrases from '../data/phrases.json';
import { h } from './elements.js';

/** The text of sample values, with `nan` and `inf` in red. */
export function marked(text: string): (string | HTMLElement)[] {
  if (text === phrases.words.not_finite) {
    return [red(text)];
  }
  const parts = notFiniteParts(text).map((part, nth) => (nth % 2 ? red(part) : part));
  return parts.filter(part => part !== '');
}

function red(text: string): HTMLElement {
  return h('span', { class: 'jaxcb-not-finite' }, text);
}
