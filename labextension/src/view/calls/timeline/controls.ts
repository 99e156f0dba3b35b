/** What a timeline says around its canvas: keys, legend, details, figures of a range. */

import { crossingOf, elementOf, endOf, shapesOf, sinceFirstCall } from '../../data/call.js';
import { siteOf, startWords, threadName } from '../../data/call.js';
import { durationColour, RAMP } from '../../colours.js';
import { hasFailed } from '../../data/labels.js';
import { notFiniteWords } from '../../data/not-finite.js';
import type { Store } from '../../data/store.js';
import { callWords, failedWords, numberWords, timeWords } from '../../data/words.js';
import { h } from '../../dom/elements.js';
import { factList } from '../../dom/tooltip.js';
import { type Hit, rampEdges } from './picture.js';
import type { Range, Tracks } from './tracks.js';

const KEYS = [
  ['W S, Ctrl+wheel', 'zoom'], ['A D ← →, drag', 'pan'], ['↑ ↓', 'scroll'],
  ['Shift+drag, drag on the axis', 'mark a range'], ['M', 'mark what is shown'],
  ['F', 'zoom to the range or call'], ['0', 'all'], ['N P', 'next, previous call'],
  ['Enter', 'zoom to the call'], ['Esc', 'clear']
] as const;

/** The keys of the timeline, which are hidden at first. */
export function keysHint(id: string): HTMLElement {
  const hint = h('p', { class: 'jaxcb-timeline-hint', id });
  for (const [key, meaning] of KEYS) {
    hint.append(h('span', {}, h('kbd', {}, key), ` ${meaning}`), ' ');
  }
  return hint;
}

/** Which color is which duration: the content of the legend. */
export function rampSwatches(extremes: Range): Node[] {
  const edges = rampEdges(extremes).map(timeWords);
  const swatches = Array.from({ length: RAMP }, (_, place) => {
    const swatch = h('span', { title: `${edges[place]} – ${edges[place + 1]}` });
    swatch.style.background = `var(${durationColour(place)})`;
    return swatch;
  });
  return [new Text(edges[0]), h('span', {}, ...swatches), new Text(edges[RAMP])];
}

/** The content of the tooltip; `whole`: the length of the recording. */
export function detailsOf(store: Store, { row, crowd, compilation }: Hit, whole: number): Node[] {
  if (compilation) {
    const lines = [
      ['start', sinceFirstCall(compilation.start_ns, whole)],
      ['lowered', timeWords(compilation.lower_ns)],
      ['compiled', timeWords(compilation.compile_ns)]
    ] as const;
    return [h('strong', {}, compilation.program), factList(lines)];
  }
  if (row === null) {
    return [];
  }
  const { calls, labels } = store;
  const failed = hasFailed(store, row) ? 'jaxcb-timeline-error' : '';
  const notes = [
    [endOf(store, row), failed],
    [notFiniteWords(labels.notFinite, row), 'jaxcb-timeline-error'],
    [crowd > 1 ? `${callWords(crowd)} in this pixel` : '', 'jaxcb-timeline-crowd']
  ];
  return [
    h('strong', {}, siteOf(store, row)),
    h('span', { class: 'jaxcb-timeline-number' }, ` call ${numberWords(row + 1)}`),
    factList([
      ['element', elementOf(store, row)],
      ['start', startWords(calls.start(row), whole)],
      ['duration', timeWords(calls.duration(row))],
      ['crossing', crossingOf(store, row)],
      ['shapes', shapesOf(store, row)],
      ['thread', threadName(store, calls.thread(row))]
    ]),
    ...notes.filter(([words]) => words).map(([words, css]) => h('p', { class: css }, words))
  ];
}

/** `2.2 ms: 312 calls · sum 1.9 ms · median 4.1 µs`. */
export function rangeWords(
  [from, to]: Range,
  { calls, failed, sum, median }: ReturnType<Tracks['figures']>,
  isFiltered: boolean
): string {
  return [
    `${timeWords(to - from)}: ${callWords(calls)}${isFiltered ? ' that pass the filters' : ''}`,
    calls > 0 && `sum ${timeWords(sum)}`,
    calls > 0 && `median ${median === null ? '…' : timeWords(median)}`,
    failed > 0 && failedWords(`${numberWords(failed)} failed`)
  ].filter(Boolean).join(' · ');
}
