/** Draws the whole timeline: bands with calls, axis, and marks. */

import { threadName } from '../../../data/call.js';
import { paintAxis, paintGround, paintNames } from './axis.js';
import { COMPILATIONS, paintCompilations } from './compilations.js';
import { paintCrossings } from './crossings.js';
import { paintRange, paintSpot } from './marks.js';
import { type Drawing, paintFailures, paintNotFinite, paintTrack } from './bars.js';
import type { Track } from '../tracks/track.js';
import type { LitTracks, Tracks } from '../tracks/tracks.js';

/** Draws everything except the marks; calls that do not pass the filter are dimmed. */
export function paintPicture(drawing: Drawing, all: Tracks, lit: LitTracks): void {
  const { pen, at, theme, store } = drawing;
  const { threads } = all;
  const [first, last] = at.visible;
  paintGround(pen, at, theme);
  pen.font = `11px ${theme.font}`;
  pen.textBaseline = 'middle';
  if (first < at.firstThread) {
    paintCompilations(drawing, first);
  }
  for (let band = Math.max(first, at.firstThread); band < last; band++) {
    const thread = threads[band - at.firstThread]!;
    if (!store.showsAll()) {
      paintTracks(drawing, all.of(thread), band, true);
    }
    paintTracks(drawing, lit.of(thread), band, false);
    lit.of(thread).forEach(track => {
      paintFailures(drawing, track, band);
      paintNotFinite(drawing, track, band);
    });
  }
  paintAxis(pen, at, theme);
  paintNames(pen, at, theme, band =>
    band < at.firstThread ? COMPILATIONS : threadName(store, threads[band - at.firstThread]!)
  );
}

/** Each track over those of outer calls. Tracks that a filter reduced have no crossings. */
function paintTracks(
  drawing: Drawing,
  tracks: readonly Track[],
  band: number,
  dimmed: boolean
): void {
  tracks.forEach((track, n) => {
    paintCrossings(drawing, track, band);
    paintTrack(drawing, track, tracks[n + 1], band, dimmed);
  });
}

/** The call below the pointer, the selected call, and the marked range of time. */
export function paintMarks(
  { pen, at, theme, store }: Drawing,
  tracks: Tracks,
  hovered: number | null,
  range: readonly [number, number] | null
): void {
  for (const [row, selected] of [[hovered, false], [store.selected, true]] as const) {
    if (row === null) {
      continue;
    }
    const thread = store.calls.thread(row);
    const track = tracks.of(thread).find(each => each.placeOf(row) !== null);
    if (track) {
      const spot = { row, band: at.firstThread + tracks.threads.indexOf(thread), depth: track.depth };
      paintSpot(pen, at, theme, store, spot, selected);
    }
  }
  if (range) {
    paintRange(pen, at, theme, range);
  }
}
