/** What vmap made of the shapes, as boxes: one row an operand or result, one column a vmap. */

import { batchedOf, diagramWords, laneWords } from './batching-axes.js';
import type { AxisKind, BatchAxis, Batched } from './batching-axes.js';
import { h, type Child } from '../dom.js';
import phrases from '../data/phrases.json';
import type { Aval, Way } from '../data/schema.js';
import { levelWords, say, shapeWords, wayShapes } from '../data/words.js';

const MOST_ROWS = 16;
const MOST_COLUMNS = 8;

const LEGEND: Readonly<Record<AxisKind, string>> = {
  mapped: 'mapped',
  broadcast: 'broadcast: repeated for every lane',
  size1: 'size 1: one for all lanes',
  looped: 'looped: one call a lane, the host does not see it',
  shared: 'no axis: one for all lanes'
};

/** Operands and results of one way: *as written → as the host sees them*. */
export function batchingDiagram(way: Way): HTMLElement {
  const rows = way.levels.length ? batchedOf(way) : null;
  const drawn = Math.max(way.operands.length, way.results.length);
  if (rows === null || way.levels.length > MOST_COLUMNS || drawn > MOST_ROWS) {
    return shapesOnly(way);
  }
  const grid = h('div', { class: 'jaxcb-batching-grid' }, ...header(way));
  grid.style.setProperty('--jaxcb-columns', String(way.levels.length + 4));
  rows.forEach((row, place) => grid.append(...cellsOf(row, place < way.operands.length)));
  // It scrolls where the output is narrow, so it can be reached by keyboard.
  return h(
    'div',
    { class: 'jaxcb-batching', role: 'img', tabindex: 0, 'aria-label': diagramWords(way, rows) },
    grid,
    footer(way, rows)
  );
}

function header(way: Way): Node[] {
  const columns = [...way.levels].reverse().map(([size], place, { length }) => {
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
  const label = { shared: '–', looped: `${number} ×` }[kind as string] ?? number;
  return h('span', { class: `jaxcb-axis jaxcb-axis-${kind}` }, label);
}

function ownBoxes(shape: readonly number[]): Child[] {
  return shape.length
    ? shape.map(size => h('span', { class: 'jaxcb-axis' }, size.toLocaleString('en-US')))
    : [h('span', { class: 'jaxcb-muted' }, 'scalar')];
}

function footer(way: Way, rows: readonly Batched[]): HTMLElement {
  const kinds = new Set(rows.flatMap(row => row.axes.map(axis => axis.kind)));
  const entries = [...kinds].map(kind =>
    h(
      'span',
      { class: 'jaxcb-batching-key' },
      h('span', { class: `jaxcb-axis jaxcb-axis-${kind}` }, kind === 'shared' ? '–' : ''),
      LEGEND[kind]
    )
  );
  return h(
    'div',
    { class: 'jaxcb-batching-legend' },
    h('strong', {}, laneWords(way.levels)),
    ...entries
  );
}

function shapesOnly(way: Way): HTMLElement {
  const vmaps = levelWords(way.levels);
  return h(
    'div',
    { class: 'jaxcb-batching-plain', role: 'img', 'aria-label': plainWords(way, vmaps) },
    ...boxesOf(way.operands),
    h('span', { class: 'jaxcb-muted' }, '→'),
    ...boxesOf(way.results),
    vmaps && h('span', { class: 'jaxcb-muted' }, vmaps)
  );
}

function plainWords(way: Way, vmaps: string): string {
  return `the host sees and answers ${wayShapes(way)}${vmaps && `; ${vmaps}`}`;
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
