/**
 * Fits badges into the space to the right of the code, so that code neither wraps nor scrolls.
 *
 * Where the code scrolls, the badge of a line that does not fit stays at the right edge.
 */

import type { EditorView } from '@codemirror/view';
import { rowOf } from './badge.js';

const GAP_PX = 14; // between the code and a badge
const NO_GAP_PX = 2;
const LEAST_PX = 22; // a sign and an ellipsis
const SIGN_PX = 12;

interface Fit {
  readonly badge: HTMLElement;
  readonly room: number;
  readonly sticks: boolean;
}

/** Sets the width of each badge when the editor measures next. */
export function fitBadges(view: EditorView): void {
  view.requestMeasure({ key: fitBadges, read: () => measured(view), write: apply });
}

function measured({ contentDOM, scrollDOM }: EditorView): Fit[] {
  const badges = [...contentDOM.querySelectorAll<HTMLElement>('.jaxcb-badge')];
  if (badges.length === 0) {
    return [];
  }
  const { clientWidth, scrollLeft } = scrollDOM;
  const edge = scrollDOM.getBoundingClientRect().left + clientWidth - scrollLeft;
  const scrolls = contentDOM.getBoundingClientRect().width > clientWidth + 1;
  return badges.map(badge => {
    const room = edge - badge.getBoundingClientRect().left;
    return { badge, room, sticks: scrolls && room < GAP_PX + LEAST_PX };
  });
}

function apply(fits: Fit[]): void {
  for (const { badge, room, sticks } of fits) {
    const { style } = rowOf(badge);
    badge.classList.toggle('jaxcb-badge-sticks', sticks);
    // Over the end of the code only if there is no room for a sign.
    const close = Math.min(NO_GAP_PX, room - SIGN_PX);
    const left = Math.min(GAP_PX, Math.max(close, room - LEAST_PX));
    badge.classList.toggle('jaxcb-badge-tight', room < GAP_PX + LEAST_PX);
    style.left = sticks ? '' : `${left}px`;
    style.maxWidth = sticks ? '' : `${Math.max(SIGN_PX, room - left)}px`;
  }
}
