/** Draws the compilations of programs, on a band of their own. */

import type { TimedCompilation } from '../../../data/labels.js';
import { timeWords } from '../../../data/words.js';
import { cut } from './axis.js';
import type { Drawing } from './bars.js';
import type { Geometry } from './geometry.js';

export const COMPILATIONS = 'compilation'; // name of the band

const LEAST_LABELLED = 26;
const LOWERING = 0.12; // opacities: unlike those of calls, these bars are not solid
const COMPILING = 0.28;

/** Lowering is drawn lighter than compiling, which follows it. If all ended earlier, it says so. */
export function paintCompilations(drawing: Drawing, band: number): void {
  const { pen, at, theme, store } = drawing;
  const top = at.top(band) + at.barTop(0);
  const { compilations } = store.labels;
  if (compilations.every(one => endOf(one) < at.scale.from)) {
    const ns = compilations.reduce((sum, one) => sum + one.lower_ns + one.compile_ns, 0);
    pen.fillStyle = theme.muted;
    const words = `◂ ${timeWords(ns)} before`;
    pen.fillText(cut(pen, words, at.plot), at.gutter + 5, top + at.barHeight(0) / 2 + 0.5);
  }
  for (const one of compilations) {
    const [start, end] = visible(one, at);
    if (end <= start) {
      continue;
    }
    const lowered = Math.min(Math.max(at.x(one.start_ns + one.lower_ns), start), end);
    pen.fillStyle = theme.text;
    pen.globalAlpha = LOWERING;
    pen.fillRect(start, top, lowered - start, at.barHeight(0));
    pen.globalAlpha = COMPILING;
    pen.fillRect(lowered, top, end - lowered, at.barHeight(0));
    pen.globalAlpha = 1;
    pen.fillRect(end - 1, top, 1, at.barHeight(0));
    if (end - lowered >= LEAST_LABELLED) {
      pen.fillText(cut(pen, one.program, end - lowered - 9), lowered + 5, top + at.barHeight(0) / 2 + 0.5);
    }
  }
}

/** The last of the compilations at a pixel; null: none. */
export function compilationAt(
  compilations: readonly TimedCompilation[],
  at: Geometry,
  x: number
): TimedCompilation | null {
  const found = compilations.filter(one => {
    const [start, end] = visible(one, at);
    return start <= x && x < end;
  });
  return found.at(-1) ?? null;
}

/** The first pixel of a compilation, and the one after its last; at least one pixel wide. */
function visible(one: TimedCompilation, at: Geometry): [number, number] {
  const start = at.x(one.start_ns);
  const end = Math.max(at.x(endOf(one)), start + 1);
  return [Math.max(start, at.gutter), Math.min(end, at.gutter + at.plot)];
}

export function endOf({ start_ns, lower_ns, compile_ns }: TimedCompilation): number {
  return start_ns + lower_ns + compile_ns;
}
