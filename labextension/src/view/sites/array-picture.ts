/** A small picture of an array of a sampled call, with its range. */

import { h, svg } from '../dom/elements.js';
import phrases from '../data/phrases.json';
import type { ArrayValues, SampleValues } from '../data/schema.js';
import { numberWords, say } from '../data/words.js';

const CELL = 6; // width of a cell in pixels
const STRIP = 12; // height of a single row
const MOST_CELLS = 1_000;
const FAINTEST = 0.12;
const SHADES = 8;

/** `x: [▁▂▃] 0 to 14 · 3 NaN`. */
export function arrayPicture(values: ArrayValues, sample: SampleValues): HTMLElement {
  const [, , , , nan, inf, picture] = values;
  const [range, wrong] = wordsOf(values);
  const name = nameOf(values, sample);
  const label = `${name}: ${[range, wrong || phrases.all_finite].filter(Boolean).join(', ')}`;
  return h(
    'span',
    { class: 'jaxcb-array' },
    `${name} `,
    pictureOf(picture, label),
    ` ${range}`,
    nan + inf > 0 && h('span', { class: 'jaxcb-not-finite' }, `${range && ' · '}${wrong}`)
  );
}

function nameOf([, place]: ArrayValues, [, operands, results]: SampleValues): string {
  const result = place - operands.length;
  const [word, nth, of] =
    result < 0 ? [phrases.argument, place, operands] : [phrases.result, result, results];
  return of.length > 1 ? `${word} ${nth + 1}` : word;
}

function wordsOf([, , minimum, maximum, nan, inf]: ArrayValues): [range: string, wrong: string] {
  const wrong = [
    nan > 0 && say(phrases.nan_count, { count: numberWords(nan) }),
    inf > 0 && say(phrases.inf_count, { count: numberWords(inf) })
  ];
  const range = minimum === '' ? '' : say(phrases.range, { minimum, maximum });
  return [range, wrong.filter(Boolean).join(', ')];
}

function pictureOf(picture: string, label: string): SVGElement {
  const rows = picture.split(' ');
  const high = rows.length === 1 ? STRIP : CELL;
  const width = CELL * Math.max(...rows.map(row => row.length));
  const height = high * rows.length;
  const viewBox = `0 0 ${width} ${height}`;
  const name = { class: 'jaxcb-array-picture', role: 'img', 'aria-label': label };
  const node = svg('svg', { ...name, width, height, viewBox });
  node.setAttribute('preserveAspectRatio', 'none');
  let cells = 0;
  rows.forEach((row, y) =>
    [...row].forEach((sign, x) => {
      if (cells++ < MOST_CELLS) {
        const shade = Number(sign);
        const good = Number.isInteger(shade);
        node.append(
          svg('rect', {
            class: good ? null : 'jaxcb-array-not-finite',
            x: x * CELL,
            y: y * high,
            width: CELL,
            height: high,
            'fill-opacity': good ? FAINTEST + ((1 - FAINTEST) * Math.min(shade, SHADES)) / SHADES : 1
          })
        );
      }
    })
  );
  return node;
}
