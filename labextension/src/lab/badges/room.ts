/** Fits badges into the space to the right of the code, so that code neither wraps nor scrolls. */

import type { EditorView } from '@codemirror/view';

const GAP_PX = 14; // between the code and a badge
const LEAST_PX = 22; // a sign and an ellipsis

interface Fit {
  readonly row: HTMLElement;
  readonly left: number;
  readonly width: number | null; // null: not limited
}

/** Sets the width of each badge when the editor measures next. */
export function fitBadges(view: EditorView): void {
  view.requestMeasure({ key: fitBadges, read: () => measured(view), write: apply });
}

// Code that already scrolls horizontally may scroll further; other code must not begin to.
function measured(view: EditorView): Fit[] {
  const scrolls = codeWidth(view) > view.scrollDOM.clientWidth + 1;
  const edge = view.contentDOM.getBoundingClientRect().right;
  return [...view.contentDOM.querySelectorAll<HTMLElement>('.jaxcb-badge')].map(badge => {
    const row = badge.firstElementChild as HTMLElement;
    const room = edge - badge.getBoundingClientRect().left;
    return scrolls
      ? { row, left: GAP_PX, width: null }
      : { row, left: Math.min(GAP_PX, room - LEAST_PX), width: Math.max(LEAST_PX, room - GAP_PX) };
  });
}

function codeWidth(view: EditorView): number {
  return view.contentDOM.getBoundingClientRect().width;
}

function apply(fits: Fit[]): void {
  for (const { row, left, width } of fits) {
    row.style.left = `${left}px`;
    row.style.maxWidth = width === null ? 'none' : `${width}px`;
  }
}
