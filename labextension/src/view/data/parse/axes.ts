/** Reads what each vmap of a variant did to its arrays. */

import { BadRecording, Fields, listOf, oneOf } from './fields.js';
import { AXIS_KINDS, type Axes, type Level } from '../schema.js';

const kind = oneOf(AXIS_KINDS);

export function readAxes(most: number): (value: unknown, path: string) => Axes {
  return (value, path) => {
    const axes = new Fields(value, path);
    return {
      operands: axes.get('operands', listOf(kind, most)),
      results: axes.get('results', kind),
      mask: axes.getOr('mask', undefined, kind)
    };
  };
}

/** `axes`, if they are those of `levels`. */
export function checked(axes: readonly Axes[], levels: readonly Level[], path: string): readonly Axes[] {
  const fits = levels.every(([, , flags], place) => axes[place]?.operands.length === flags.length);
  if (!fits || axes.length !== levels.length) {
    throw new BadRecording(`${path}.axes do not fit its vmaps.`);
  }
  return axes;
}
