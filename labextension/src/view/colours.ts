/** Which of the eight colours of sites each one has; style/timeline.css has them. */

export const COLOURS = 8;

/** What stays the same of a site when its cell ends. */
export interface Coloured {
  readonly function: string;
  readonly flavor: string;
  readonly line: number;
  readonly column: number;
}

/**
 * The colours of `sites`, by place.
 *
 * Each has that of its own hash, so it keeps it where other sites are listed, or in another order:
 * while its cell runs and afterwards. If another site has that one, it has the next that is free.
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

/** The custom property with a colour. */
export function siteColour(colour: number): string {
  return `--jaxcb-site-${colour}`;
}

function hash(text: string): number {
  let sum = 0;
  for (const letter of text) {
    sum = (31 * sum + letter.codePointAt(0)!) % 1_000_003;
  }
  return sum;
}
