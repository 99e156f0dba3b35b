/** Draws how vmap changed the shapes: a row per operand or result, a column per vmap. */

import { h, set, type Child } from '../dom/elements.js';
import phrases from '../data/phrases.json';
import type { Axis, Diagram, Row, Variant } from '../data/schema.js';
import { middleCut, numberWords } from '../data/words.js';

const NAME_WIDTH = 24; // characters: of `params['weights']['bias']` the end matters, too

/** Operands and results of one variant, as in the program and as the host sees them. */
export function batchingDiagram(variant: Variant): HTMLElement {
  const { diagram, vmaps } = variant;
  if (!diagram) {
    return h('div', {}, h('code', {}, variant.arrays), vmaps && h('span', { class: 'jaxcb-muted' }, ` ${vmaps}`));
  }
  const node = drawing(variant, diagram);
  set(node, { tabindex: 0 }); // focusable, because it scrolls in narrow outputs
  node.append(legend(diagram));
  return node;
}

/** The sentence and the diagram, for a tooltip: without a legend, and never focused. */
export function smallDiagram(variant: Variant, diagram: Diagram): HTMLElement {
  return h('div', {}, h('strong', {}, variant.elements), drawing(variant, diagram));
}

function drawing({ elements }: Variant, diagram: Diagram): HTMLElement {
  const { vmaps, receives, rows, results } = diagram;
  const columns = rows.length ? rows[0]![1].length : vmaps.length;
  const grid = h(
    'div',
    { class: 'jaxcb-batching-grid' },
    head(''),
    ...vmaps.slice(0, columns).map(head),
    head(phrases.own_axes),
    head(''),
    head(receives)
  );
  grid.lastElementChild!.classList.add('jaxcb-batching-receives');
  grid.style.setProperty('--jaxcb-columns', String(columns + 4));
  const split = rows.length - results;
  rows.forEach((row, place) => {
    if (place === split) {
      grid.append(h('span', { class: 'jaxcb-batching-returns' }, phrases.must_return));
    }
    grid.append(...cellsOf(row, place < split ? '→' : '←'));
  });
  const spoken = rows.map((row, place) => rowWords(row, place < split ? receives : phrases.must_return));
  const label = [elements, ...spoken].join('. ');
  return h('div', { class: 'jaxcb-batching', role: 'img', 'aria-label': label }, grid);
}

/** `vmap 4`, and below it in small letters what stands in parentheses. */
function head(words: string): HTMLElement {
  const [, text, below] = /^(.*?)(?: \((.*)\))?$/.exec(words)!;
  return h('span', { class: 'jaxcb-batching-head' }, text!, below && h('small', {}, below));
}

function cellsOf([name, axes, own, host, dtype]: Row, arrow: string): Node[] {
  return [
    h('code', { class: 'jaxcb-batching-name', title: name }, middleCut(name, NAME_WIDTH)),
    ...axes.map(axisBox),
    h('span', { class: 'jaxcb-batching-own' }, ...ownBoxes(own)),
    h('span', { class: 'jaxcb-muted' }, arrow),
    h(
      'code',
      { class: 'jaxcb-batching-host' },
      ...hostShape(host, axes),
      dtype && h('small', { class: 'jaxcb-muted' }, ` ${dtype}`)
    )
  ];
}

function axisBox([kind, size]: Axis): HTMLElement {
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
function hostShape(host: string, axes: readonly Axis[]): Child[] {
  const kinds = axes.map(([kind]) => kind).filter(kind => ['batched', 'tiled', 'size1'].includes(kind));
  if (host.includes('≤')) {
    return [host]; // of a masked call, which has one axis for all vmaps
  }
  const seen = kinds.values();
  return host.split(/(\d+)/).map(part => {
    const kind = /\d/.test(part) && seen.next().value;
    return kind ? h('span', { class: `jaxcb-size-${kind}` }, part) : part;
  });
}

function legend({ rows }: Diagram): HTMLElement {
  const kinds = new Set(rows.flatMap(([, axes]) => axes.map(([kind]) => kind)));
  return h(
    'ul',
    { class: 'jaxcb-batching-legend' },
    ...[...kinds].map(kind => h('li', {}, h('em', {}, phrases.axes[kind]), `: ${phrases.axes_mean[kind]}`))
  );
}

function rowWords([name, axes, , host, dtype]: Row, verb: string): string {
  const kinds = axes.map(([kind, size]) => {
    const sized = kind !== 'size1' && kind !== 'unbatched';
    return `${sized ? `${numberWords(size)} ` : ''}${phrases.axes[kind]}`;
  });
  return `${name}: ${kinds.join(', ')}; ${verb} ${`${host} ${dtype}`.trimEnd()}`;
}
