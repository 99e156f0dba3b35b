/** A box beside a point of the window, in the top layer if supported. */

import { h } from './elements.js';

const BESIDE = 14;

/** An empty, hidden box. */
export function tooltip(): HTMLElement {
  return h('div', { class: 'jaxcb-tooltip', role: 'tooltip', hidden: true });
}

/** Names and values in a box; without the empty values. */
export function factList(lines: readonly (readonly [string, string])[]): HTMLElement {
  const list = h('dl', {});
  for (const [name, value] of lines) {
    if (value) {
      list.append(h('dt', {}, name), h('dd', {}, value));
    }
  }
  return list;
}

/** Shows a box that is in the document. */
export function placeTooltip(box: HTMLElement, x: number, y: number): void {
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

export function hideTooltip(box: HTMLElement): void {
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
