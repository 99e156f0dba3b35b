/** The box beside the pointer with the details of one call. */

import { errorOf, elementOf, shapesOf, siteOf, startWords, threadName } from '../data/call.js';
import { h } from '../dom.js';
import type { Store } from '../data/store.js';
import type { Hit } from './tracks/hit.js';
import { callWords, timeWords } from '../data/words.js';

const BESIDE = 14;

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
    ['shapes', shapesOf(store, row)],
    ['thread', threadName(store, calls.thread(row))]
  ];
  const list = h('dl', {});
  for (const [name, value] of lines) {
    if (value) {
      list.append(h('dt', {}, name), h('dd', {}, value));
    }
  }
  const number = (row + 1).toLocaleString('en-US');
  const error = errorOf(store, row);
  const parts = [
    h('strong', {}, siteOf(store, row)),
    h('span', { class: 'jaxcb-timeline-number' }, ` call ${number}`),
    list,
    error && h('p', { class: 'jaxcb-timeline-error' }, `✕ ${error}`),
    crowd > 1 && h('p', { class: 'jaxcb-timeline-crowd' }, `${callWords(crowd)} in this pixel`)
  ];
  box.replaceChildren(...parts.filter(part => part instanceof Node));
}

/** Shows the box beside a point of the window, in the top layer if supported. */
export function placeDetails(box: HTMLElement, x: number, y: number): void {
  box.hidden = false;
  if ('popover' in box && !box.hasAttribute('popover')) {
    box.setAttribute('popover', 'manual');
  }
  if (isPopover(box) && !box.matches(':popover-open')) {
    box.showPopover();
  }
  const { width, height } = box.getBoundingClientRect();
  const page = document.documentElement;
  const right = x + BESIDE + width <= page.clientWidth;
  const below = y + BESIDE + height <= page.clientHeight;
  box.style.left = `${Math.max(right ? x + BESIDE : x - BESIDE - width, 4)}px`;
  box.style.top = `${Math.max(below ? y + BESIDE : y - BESIDE - height, 4)}px`;
}

export function hideDetails(box: HTMLElement): void {
  if (!box.hidden) {
    box.hidden = true;
    if (isPopover(box) && box.matches(':popover-open')) {
      box.hidePopover();
    }
  }
}

function isPopover(box: HTMLElement): boolean {
  return box.isConnected && box.hasAttribute('popover');
}
