/** The footer of a recording: missing calls, call order, environment, compilations, actions. */

import { h, type Child } from './dom/elements.js';
import { disclosure } from './sites/details.js';
import { timesKnown } from './sites/words.js';
import phrases from './data/phrases.json';
import type { Compilation, Measured } from './data/schema.js';
import type { ReadFacts } from './data/parse/recording.js';
import {
  counted,
  joined,
  numberWords,
  say,
  timeWords,
  warningWords
} from './data/words.js';

const MOST_PROGRAMS = 50;

/**
 * Warnings, details, and actions.
 *
 * Args:
 *   actions: opens the view elsewhere, pins it to compare, profiles the cell.
 */
export function viewFooter(
  facts: ReadFacts,
  measured: Measured,
  actions: readonly Child[] = []
): HTMLElement {
  const footer = h('div', { class: 'jaxcb-footer' });
  for (const words of warnings(facts, measured)) {
    footer.append(h('p', { class: 'jaxcb-warning' }, warningWords(words)));
  }
  for (const words of measured.by_worker) {
    footer.append(h('p', {}, words));
  }
  const small = joined([absence(facts), environmentWords(measured)]);
  if (small) {
    footer.append(h('p', {}, small));
  }
  if (measured.compilations.length) {
    footer.append(compilations(measured.compilations));
  }
  if (actions.some(Boolean)) {
    footer.append(h('div', { class: 'jaxcb-actions' }, ...actions));
  }
  return footer;
}

function warnings(facts: ReadFacts, measured: Measured): string[] {
  const words = [...measured.out_of_order];
  if (facts.full) {
    words.push(facts.full);
  }
  if (facts.left_out) {
    words.push(say(phrases.not_listed, { count: numberWords(facts.left_out) }));
  }
  return words;
}

function absence(facts: ReadFacts): string {
  const called = facts.sites.some(site => site.calls);
  if (facts.ahead) {
    return 'explained without running';
  }
  return called && !timesKnown(facts) ? 'times are not saved' : '';
}

/** `train.py --steps 3 · 2026-11-27 09:30 +0100 · jax 0.10.2 · cpu`: the backend needs no label. */
function environmentWords({ environment }: Measured): string {
  const { script = '', arguments: given = '', date = '', backend = '', ...versions } = environment;
  const packages = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return joined([`${script} ${given}`.trim(), date, ...packages, backend]);
}

function compilations(all: readonly Compilation[]): HTMLElement {
  const items = (): Child[] => [
    h(
      'ul',
      {},
      ...all.slice(0, MOST_PROGRAMS).map(one => h('li', {}, compilationWords(one))),
      all.length > MOST_PROGRAMS && h('li', {}, `and ${all.length - MOST_PROGRAMS} more`)
    )
  ];
  return disclosure(counted(all.length, 'compilation'), false, items);
}

function compilationWords({ program, lower_ns, compile_ns }: Compilation): string {
  return `${program}: lowered ${timeWords(lower_ns)}, compiled ${timeWords(compile_ns)}`;
}
