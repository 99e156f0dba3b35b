/** What is worth knowing of a site beyond its row. */

import { batchingDiagram } from './batching.js';
import { h, type Child } from '../dom.js';
import { errorWords, previewWords, shardWords } from './words.js';
import type { Site, Way } from '../data/schema.js';
import { callWords, counted, levelWords, wayShapes } from '../data/words.js';

const MOST_WAYS = 24;
const SHORT_ERROR = 160; // characters that stand without folding

/** How much is unfolded from the start. */
export interface Unfolded {
  readonly diagrams: boolean;
}

/** The lines below a site's row; none for most sites that simply are called. */
export function siteDetails(
  site: Site,
  around: readonly string[],
  unfolded: Unfolded
): HTMLElement[] {
  return [
    ...reasonOf(site),
    ...site.errors.map(errorLine),
    ...site.notes.map(note => line('note', '•', note)),
    ...contextOf(site, around),
    ...waysOf(site.shapes, unfolded),
    ...previewsOf(site)
  ];
}

/** Details whose content is made when they are opened first. */
export function folded(summary: Child, open: boolean, content: () => Child[]): HTMLElement {
  const node = h('details', { open }, h('summary', {}, summary));
  let filled = false;
  const fill = (): void => {
    if (node.open && !filled) {
      filled = true;
      for (const child of content()) {
        if (child !== null && child !== undefined && child !== false) {
          node.append(typeof child === 'number' ? String(child) : child);
        }
      }
    }
  };
  node.addEventListener('toggle', fill);
  fill();
  return node;
}

function line(kind: string, sign: string, ...words: Child[]): HTMLElement {
  return h(
    'p',
    { class: `jaxcb-site-${kind}` },
    h('span', { class: 'jaxcb-sign', 'aria-hidden': 'true' }, sign),
    h('span', {}, ...words)
  );
}

function reasonOf(site: Site): HTMLElement[] {
  const lines: HTMLElement[] = [];
  if (site.reason) {
    lines.push(h('p', { class: 'jaxcb-site-reason' }, site.reason));
  }
  if (site.remedy) {
    lines.push(line('remedy', '↳', h('strong', {}, 'What to do: '), site.remedy));
  }
  return lines;
}

function errorLine(error: string): HTMLElement {
  const short = errorWords(error, SHORT_ERROR);
  if (short === error) {
    return line('error', '✕', error);
  }
  const node = folded(`✕ ${short}`, false, () => [h('pre', { tabindex: 0 }, error)]);
  node.classList.add('jaxcb-site-error');
  return node;
}

function contextOf(site: Site, around: readonly string[]): HTMLElement[] {
  const words: string[] = [];
  if (around.length) {
    words.push(`in ${around.join(' › ')}`);
  }
  if (site.crossings && site.crossings !== site.calls) {
    words.push(`${callWords(site.calls)} in ${counted(site.crossings, 'trip')} to the host`);
  }
  return words.length ? [h('p', { class: 'jaxcb-site-context' }, words.join(' · '))] : [];
}

function waysOf(ways: readonly Way[], { diagrams }: Unfolded): HTMLElement[] {
  const [only, ...more] = ways;
  if (only === undefined) {
    return [];
  }
  if (!more.length) {
    return [wayBlock(only, diagrams, '')];
  }
  const list = folded(`${ways.length.toLocaleString('en-US')} shapes`, ways.length <= 3, () => [
    ...ways.slice(0, MOST_WAYS).map(way => wayBlock(way, false, `${callWords(way.calls)}: `)),
    ways.length > MOST_WAYS &&
      h('p', { class: 'jaxcb-muted' }, `and ${ways.length - MOST_WAYS} more shapes`)
  ]);
  list.classList.add('jaxcb-site-ways');
  return [list];
}

function wayBlock(way: Way, open: boolean, calls: string): HTMLElement {
  const shards = shardWords(way);
  const more = shards && h('p', { class: 'jaxcb-site-context' }, shards);
  if (!way.levels.length) {
    const label = calls && h('span', { class: 'jaxcb-muted' }, calls);
    return h('div', { class: 'jaxcb-site-way' }, label, batchingDiagram(way), more);
  }
  const summary = h(
    'span',
    {},
    `${calls}`,
    h('code', {}, wayShapes(way)),
    h('span', { class: 'jaxcb-muted' }, ` ${levelWords(way.levels)}`)
  );
  const diagram = folded(summary, open, () => [batchingDiagram(way)]);
  return h('div', { class: 'jaxcb-site-way' }, diagram, more);
}

function previewsOf(site: Site): HTMLElement[] {
  if (!site.previews.length) {
    return [];
  }
  const count = site.previews.length;
  const title = `values of ${count === 1 ? 'one call' : `${count} calls`}`;
  const items = (): Child[] => [
    h(
      'ul',
      { class: 'jaxcb-site-previews' },
      ...site.previews.map(preview =>
        h('li', { class: preview[3] ? 'jaxcb-bad' : null }, h('code', {}, previewWords(preview)))
      )
    )
  ];
  return [folded(title, count <= 4, items)];
}
