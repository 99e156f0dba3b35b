/** Draws how vmap changed the shapes: a row per operand or result, a column per vmap. */

import { batchedOf, diagramWords, elementWords, receives } from './batching-axes.js';
import type { BatchAxis, Batched, DrawnKind } from './batching-axes.js';
import { h, set, type Child } from '../dom/elements.js';
import phrases from '../data/phrases.json';
import type { Aval, Variant } from '../data/schema.js';
import {
  isOfHost,
  levelWords,
  middleCut,
  numberWords,
  say,
  shapeWords,
  variantShapes
} from '../data/words.js';

const MOST_ROWS = 16;
const MOST_COLUMNS = 8;
const NAME_WIDTH = 24; // characters: of `params['weights']['bias']` the end matters, too

/** Operands and results of one variant, as in the program and as the host sees them. */
export function batchingDiagram(variant: Variant): HTMLElement {
  const rows = rowsOf(variant);
  if (rows === null) {
    return shapesOnly(variant);
  }
  const diagram = drawing(variant, rows);
  set(diagram, { tabindex: 0 }); // focusable, because it scrolls in narrow outputs
  diagram.append(legend(rows));
  return diagram;
}

/** The sentence and the diagram, for a tooltip: without a legend, and never focused. */
export function smallDiagram(variant: Variant): HTMLElement {
  const rows = rowsOf(variant);
  const diagram = rows === null ? shapesOnly(variant) : drawing(variant, rows);
  return h('div', {}, h('strong', {}, elementWords(variant)), diagram);
}

/** The rows to draw; null if there is no vmap, too much to draw, or inconsistent data. */
function rowsOf(variant: Variant): readonly Batched[] | null {
  const { operands, results, levels } = variant;
  const fits = levels.length <= MOST_COLUMNS && Math.max(operands.length, results.length) <= MOST_ROWS;
  return levels.length && fits ? batchedOf(variant) : null;
}

function drawing(variant: Variant, rows: readonly Batched[]): HTMLElement {
  return h(
    'div',
    { class: 'jaxcb-batching', role: 'img', 'aria-label': diagramWords(variant, rows) },
    gridOf(variant, rows)
  );
}

function gridOf(variant: Variant, rows: readonly Batched[]): HTMLElement {
  const split = variant.operands.length + (variant.mask ? 1 : 0);
  const grid = h('div', { class: 'jaxcb-batching-grid' }, ...header(variant));
  grid.style.setProperty('--jaxcb-columns', String(variant.levels.length + 4));
  rows.slice(0, split).forEach(row => grid.append(...cellsOf(row, '→')));
  if (rows.length > split) {
    grid.append(h('span', { class: 'jaxcb-batching-returns' }, phrases.must_return));
    rows.slice(split).forEach(row => grid.append(...cellsOf(row, '←')));
  }
  return grid;
}

function header(variant: Variant): Node[] {
  const columns = [...variant.levels].reverse().map(([size], place, { length }) => {
    const ends = { 0: phrases.outermost, [length - 1]: phrases.innermost };
    return head(say(phrases.vmap, { size: numberWords(size) }), length > 1 && ends[place]);
  });
  const host = head(receives(variant));
  host.classList.add('jaxcb-batching-receives');
  return [head(''), ...columns, head(phrases.own_axes), head(''), host];
}

function head(text: string, below: Child = ''): HTMLElement {
  return h('span', { class: 'jaxcb-batching-head' }, text, below && h('small', {}, below));
}

function cellsOf(row: Batched, arrow: string): Node[] {
  return [
    h('code', { class: 'jaxcb-batching-name', title: row.name }, middleCut(row.name, NAME_WIDTH)),
    ...row.axes.map(axisBox),
    h('span', { class: 'jaxcb-batching-own' }, ...ownBoxes(row.own)),
    h('span', { class: 'jaxcb-muted' }, arrow),
    h(
      'code',
      { class: 'jaxcb-batching-host' },
      ...hostShape(row),
      row.dtype && h('small', { class: 'jaxcb-muted' }, ` ${row.dtype}`)
    )
  ];
}

function axisBox({ kind, size }: BatchAxis): HTMLElement {
  return h(
    'span',
    { class: `jaxcb-axis jaxcb-axis-${kind}` },
    h('span', {}, kind === 'unbatched' ? '–' : numberWords(size)),
    h('small', {}, phrases.axes[kind])
  );
}

function ownBoxes(shape: readonly number[]): Child[] {
  return shape.length
    ? shape.map(size => h('span', { class: 'jaxcb-axis' }, numberWords(size)))
    : [h('span', { class: 'jaxcb-muted' }, 'scalar')];
}

/** `(4, 1, 5)`, in which the sizes of batch axes look like their boxes. */
function hostShape({ axes, own, host }: Batched): Child[] {
  const seen = axes.filter(({ kind }) => isOfHost(kind));
  if (host !== shapeWords([...seen.map(({ size }) => size), ...own])) {
    return [host]; // of a masked call
  }
  const sizes = [
    ...seen.map(({ kind, size }) => h('span', { class: `jaxcb-size-${kind}` }, String(size))),
    ...own.map(String)
  ];
  const separated = sizes.flatMap((size, place) => (place ? [', ', size] : [size]));
  return ['(', ...separated, sizes.length === 1 ? ',)' : ')'];
}

function legend(rows: readonly Batched[]): HTMLElement {
  const kinds = new Set(rows.flatMap(row => row.axes.map(axis => axis.kind)));
  return h('ul', { class: 'jaxcb-batching-legend' }, ...[...kinds].map(meaning));
}

function meaning(kind: DrawnKind): HTMLElement {
  return h('li', {}, h('em', {}, phrases.axes[kind]), `: ${phrases.axes_mean[kind]}`);
}

function shapesOnly(variant: Variant): HTMLElement {
  const vmaps = levelWords(variant);
  return h(
    'div',
    { class: 'jaxcb-batching-plain', role: 'img', 'aria-label': plainWords(variant, vmaps) },
    ...boxesOf(variant.operands, variant.operand_names),
    h('span', { class: 'jaxcb-muted' }, '→'),
    ...boxesOf(variant.results, []),
    vmaps && h('span', { class: 'jaxcb-muted' }, vmaps)
  );
}

function plainWords(variant: Variant, vmaps: string): string {
  return `the host function maps ${variantShapes(variant)}${vmaps && `; ${vmaps}`}`;
}

function boxesOf(avals: readonly Aval[], names: readonly string[]): Child[] {
  if (!avals.length) {
    return [h('span', { class: 'jaxcb-muted' }, phrases.nothing)];
  }
  const hasNames = names.length === avals.length;
  const shown = avals.slice(0, MOST_ROWS).map(([shape, dtype], place) =>
    h(
      'span',
      { class: 'jaxcb-axis jaxcb-batching-array' },
      hasNames && `${names[place]} `,
      shapeWords(shape),
      h('small', { class: 'jaxcb-muted' }, dtype)
    )
  );
  const more = avals.length - shown.length;
  return [...shown, more > 0 && h('span', { class: 'jaxcb-muted' }, `and ${more} more`)];
}
