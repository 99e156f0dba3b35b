/** The colors of sites, durations and kinds, defined in style/timeline.css and style/profile.css. */

import type { KindId } from './data/schema.js';

export const COLOURS = 8;

/** The properties of a site that do not change when its cell ends. */
interface Coloured {
  readonly function: string;
  readonly flavor: string;
  readonly line: number;
  readonly column: number;
}

/**
 * The colors of `sites`, by index.
 *
 * The hash of a site determines its color, so it keeps its color when other sites are added or
 * reordered, as when its cell ends. If that color is taken, it gets the next free one.
 */
export function coloursOf(sites: readonly Coloured[]): number[] {
  const keys = sites.map(each => [each.function, each.flavor, each.line, each.column].join('\n'));
  const places = [...keys.keys()].sort((a, b) => (keys[a]! < keys[b]! ? -1 : 1));
  const colours = keys.map(() => 0);
  const taken = new Set<number>();
  for (const place of places) {
    if (taken.size === COLOURS) {
      taken.clear();
    }
    let colour = hash(keys[place]!) % COLOURS;
    while (taken.has(colour)) {
      colour = (colour + 1) % COLOURS;
    }
    taken.add(colour);
    colours[place] = colour;
  }
  return colours;
}

export const RAMP = 7; // colors of durations

/** The CSS custom property of a color for durations, from short to long. */
export function durationColour(place: number): string {
  return `--jaxcb-duration-${place}`;
}

/** The CSS custom property of a color. */
export function siteColour(colour: number): string {
  return `--jaxcb-site-${colour}`;
}

/** The CSS custom property of a color for what takes wall time. */
export function kindColour(kind: KindId): string {
  return `--jaxcb-kind-${kind}`;
}

function hash(text: string): number {
  let sum = 0;
  for (const letter of text) {
    sum = (31 * sum + letter.codePointAt(0)!) % 1_000_003;
  }
  return sum;
}
