/** Draws how vmap changed the shapes: a row per operand or result, a column per vmap. */

import { batchedOf, diagramWords, elementWords } from './batching-axes.js';
import type { AxisKind, BatchAxis, Batched } from './batching-axes.js';
import { h, type Child } from '../dom.js';
import phrases from '../data/phrases.json';
import type { Aval, Variant } from '../data/schema.js';
import { levelWords, say, shapeWords, variantShapes } from '../data/words.js';

const MOST_ROWS = 16;
const MOST_COLUMNS = 8;

const LEGEND: Readonly<Record<AxisKind, string>> = {
  batched: 'batched: one entry per batch element',
  tiled: 'tiled: repeated for every batch element',
  size1: 'size-1 axis: one entry for all batch elements',
  looped: 'looped over: one call per batch element, without this axis',
  unbatched: 'no axis: one value for all batch elements'
};

/** Operands and results of one variant, as in the program and as the host sees them. */
export function batchingDiagram(variant: Variant): HTMLElement {
  const rows = variant.levels.length ? batchedOf(variant) : null;
  const drawn = Math.max(variant.operands.length, variant.results.length);
  if (rows === null || variant.levels.length > MOST_COLUMNS || drawn > MOST_ROWS) {
    return shapesOnly(variant);
  }
  const grid = h('div', { class: 'jaxcb-batching-grid' }, ...header(variant));
  grid.style.setProperty('--jaxcb-columns', String(variant.levels.length + 4));
  rows.forEach((row, place) => grid.append(...cellsOf(row, place < variant.operands.length)));
  // Focusable, because it scrolls in narrow outputs.
  return h(
    'div',
    { class: 'jaxcb-batching', role: 'img', tabindex: 0, 'aria-label': diagramWords(variant, rows) },
    grid,
    footer(variant, rows)
  );
}

function header(variant: Variant): Node[] {
  const columns = [...variant.levels].reverse().map(([size], place, { length }) => {
    const title = place === 0 ? 'outermost' : place === length - 1 ? 'innermost' : '';
    return head(say(phrases.vmap, { size }), length > 1 ? title : '');
  });
  const host = head('the host sees');
  host.classList.add('jaxcb-batching-head-host');
  return [head('as written'), ...columns, head('own axes'), head(''), host];
}

function head(text: string, below = ''): HTMLElement {
  return h(
    'span',
    { class: 'jaxcb-batching-head' },
    text,
    below && h('small', { class: 'jaxcb-muted' }, below)
  );
}

function cellsOf(row: Batched, isOperand: boolean): Node[] {
  return [
    h(
      'span',
      { class: 'jaxcb-batching-name', title: row.dtype },
      `${row.name} `,
      h('code', {}, shapeWords(row.own))
    ),
    ...row.axes.map(axis => h('span', {}, axisBox(axis))),
    h('span', { class: 'jaxcb-batching-own' }, ...ownBoxes(row.own)),
    h('span', { class: 'jaxcb-muted' }, isOperand ? '→' : '←'),
    h('code', { class: 'jaxcb-batching-host' }, shapeWords(row.host))
  ];
}

function axisBox({ kind, size }: BatchAxis): HTMLElement {
  const number = size.toLocaleString('en-US');
  const label = { unbatched: '–', looped: `${number} ×` }[kind as string] ?? number;
  return h('span', { class: `jaxcb-axis jaxcb-axis-${kind}` }, label);
}

function ownBoxes(shape: readonly number[]): Child[] {
  return shape.length
    ? shape.map(size => h('span', { class: 'jaxcb-axis' }, size.toLocaleString('en-US')))
    : [h('span', { class: 'jaxcb-muted' }, 'scalar')];
}

function footer(variant: Variant, rows: readonly Batched[]): HTMLElement {
  const kinds = new Set(rows.flatMap(row => row.axes.map(axis => axis.kind)));
  const entries = [...kinds].map(kind =>
    h(
      'span',
      { class: 'jaxcb-batching-key' },
      h('span', { class: `jaxcb-axis jaxcb-axis-${kind}` }, kind === 'unbatched' ? '–' : ''),
      LEGEND[kind]
    )
  );
  return h(
    'div',
    { class: 'jaxcb-batching-legend' },
    h('strong', {}, elementWords(variant.levels)),
    ...entries
  );
}

function shapesOnly(variant: Variant): HTMLElement {
  const vmaps = levelWords(variant.levels);
  return h(
    'div',
    { class: 'jaxcb-batching-plain', role: 'img', 'aria-label': plainWords(variant, vmaps) },
    ...boxesOf(variant.operands),
    h('span', { class: 'jaxcb-muted' }, '→'),
    ...boxesOf(variant.results),
    vmaps && h('span', { class: 'jaxcb-muted' }, vmaps)
  );
}

function plainWords(variant: Variant, vmaps: string): string {
  return `the host function maps ${variantShapes(variant)}${vmaps && `; ${vmaps}`}`;
}

function boxesOf(avals: readonly Aval[]): Child[] {
  if (!avals.length) {
    return [h('span', { class: 'jaxcb-muted' }, phrases.nothing)];
  }
  const shown = avals.slice(0, MOST_ROWS).map(([shape, dtype]) =>
    h(
      'span',
      { class: 'jaxcb-axis jaxcb-batching-array' },
      shapeWords(shape),
      h('small', { class: 'jaxcb-muted' }, dtype)
    )
  );
  const more = avals.length - shown.length;
  return [...shown, more > 0 && h('span', { class: 'jaxcb-muted' }, `and ${more} more`)];
}
