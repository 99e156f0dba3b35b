/** The details of the call or the compilation below the pointer. */

import { crossingOf, elementOf, endOf, shapesOf, sinceFirstCall, siteOf, startWords, threadName } from '../../data/call.js';
import { h } from '../../dom/elements.js';
import { hasFailed, type TimedCompilation } from '../../data/labels.js';
import { notFiniteWords } from '../../data/not-finite.js';
import type { Store } from '../../data/store.js';
import { factList } from '../../dom/tooltip.js';
import type { Hit } from './tracks/hit.js';
import { callWords, timeWords } from '../../data/words.js';

/** The details of the call below the pointer. */
export function fillDetails(
  box: HTMLElement,
  store: Store,
  { row, crowd }: Hit,
  whole: number
): void {
  const { calls } = store;
  const lines: readonly (readonly [string, string])[] = [
    ['element', elementOf(store, row)],
    ['start', startWords(calls.start(row), whole)],
    ['duration', timeWords(calls.duration(row))],
    ['crossing', crossingOf(store, row)],
    ['shapes', shapesOf(store, row)],
    ['thread', threadName(store, calls.thread(row))]
  ];
  const number = (row + 1).toLocaleString('en-US');
  const end = endOf(store, row);
  const notFinite = notFiniteWords(store.labels.notFinite, row);
  const parts = [
    h('strong', {}, siteOf(store, row)),
    h('span', { class: 'jaxcb-timeline-number' }, ` call ${number}`),
    factList(lines),
    end && h('p', { class: hasFailed(store, row) ? 'jaxcb-timeline-error' : '' }, end),
    notFinite && h('p', { class: 'jaxcb-timeline-error' }, notFinite),
    crowd > 1 && h('p', { class: 'jaxcb-timeline-crowd' }, `${callWords(crowd)} in this pixel`)
  ];
  box.replaceChildren(...parts.filter(part => part instanceof Node));
}

/** The details of a compilation; `whole`: the length of the recording. */
export function fillCompilation(box: HTMLElement, one: TimedCompilation, whole: number): void {
  const lines = [
    ['start', sinceFirstCall(one.start_ns, whole)],
    ['lowered', timeWords(one.lower_ns)],
    ['compiled', timeWords(one.compile_ns)]
  ] as const;
  box.replaceChildren(h('strong', {}, one.program), factList(lines));
}
