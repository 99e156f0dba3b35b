/** Draws how the time of a call of a site went in the last runs of its cell. */

import { numberWords, timeWords } from '../data/words.js';
import { h, svg } from '../dom/elements.js';
import type { Trend } from './history.js';

const WIDTH = 56;
const HEIGHT = 14;
const EDGE = 2; // for the dot of the last run

/** A sparkline; if the last run was much slower or faster than before, a word says so. */
export function trendNode({ times, ratio, verdict }: Trend): HTMLElement {
  const all = `time per call in the last ${times.length} runs: ${times.map(timeWords).join(', ')}`;
  const most = Math.max(...times, 1);
  const points = times.map((ns, run) => [
    EDGE + (run / (times.length - 1)) * (WIDTH - 2 * EDGE),
    HEIGHT - EDGE - (ns / most) * (HEIGHT - 2 * EDGE)
  ]);
  const [x, y] = points.at(-1)!;
  const picture = svg(
    'svg',
    {
      class: 'jaxcb-trend-line',
      role: 'img',
      'aria-label': all,
      width: WIDTH,
      height: HEIGHT,
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`
    },
    svg('polyline', { points: points.map(each => each.map(Math.round).join()).join(' ') }),
    svg('circle', { cx: x, cy: y, r: EDGE })
  );
  const title = verdict ? `${all}; compared with the median of the runs before` : all;
  return h(
    'span',
    { class: `jaxcb-trend${verdict && ` jaxcb-trend-${verdict}`}`, title },
    picture,
    verdict && h('span', { class: 'jaxcb-trend-word' }, `${timesWords(ratio)} ${verdict}`)
  );
}

/** `1.5 ×`, `12 ×`: how many times slower or faster. */
function timesWords(ratio: number): string {
  const times = Math.max(ratio, 1 / Math.max(ratio, 1e-9));
  return `${times >= 100 ? numberWords(Math.round(times)) : Number(times.toPrecision(2))} ×`;
}
