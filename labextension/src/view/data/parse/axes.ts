/** Reads what each vmap of a variant did to its arrays. */

import { BadRecording, Fields, listOf, oneOf } from './fields.js';
import { AXIS_KINDS, type Axes, type AxisKind, type Level, type Mask } from '../schema.js';

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

// What was saved before it had axes names one of these methods: batched and unbatched arguments.
const METHODS: ReadonlyMap<string, readonly [AxisKind, AxisKind]> = new Map([
  ['sequential', ['looped', 'unbatched']],
  ['sequential_unrolled', ['looped', 'unbatched']],
  ['expand_dims', ['batched', 'size1']],
  ['broadcast_all', ['batched', 'tiled']],
  ['legacy_vectorized', ['batched', 'unbatched']]
]);

/** The axes of a variant that was saved without them. */
export function axesOf(levels: readonly Level[], mask: Mask | undefined): readonly Axes[] {
  return levels.map(([, method, flags], place) => {
    const [batched, unbatched] = METHODS.get(method) ?? ['in_place', 'unbatched'];
    const of = (flag: boolean | undefined): AxisKind => (flag ? batched : unbatched);
    const own = mask && { mask: of(mask[0][place]) };
    return { operands: flags.map(of), results: batched, ...own };
  });
}

/** `axes`, if they are those of `levels`. */
export function checked(axes: readonly Axes[], levels: readonly Level[], path: string): readonly Axes[] {
  const fits = levels.every(([, , flags], place) => axes[place]?.operands.length === flags.length);
  if (!fits || axes.length !== levels.length) {
    throw new BadRecording(`${path}.axes do not fit its vmaps.`);
  }
  return axes;
}
