/** Words of the glossary, with their meaning where they are hovered. */

import phrases from '../data/phrases.json';
import { h } from './elements.js';

type Term = keyof typeof phrases.meanings;

/** `words`, which use a term of the glossary. */
export function term(name: Term, words: string, tone = ''): HTMLElement {
  const css = ['jaxcb-term', tone].filter(Boolean).join(' ');
  return h('abbr', { class: css, title: meaning(name) }, words);
}

/** `Elided: fewer host calls than ...`, for a tooltip. */
export function meaning(name: Term): string {
  return `${name[0]!.toUpperCase()}${name.slice(1)}: ${phrases.meanings[name]}`;
}
