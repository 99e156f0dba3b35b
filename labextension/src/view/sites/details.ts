/** The details of a site below its row. */

import { batchingDiagram } from './batching.js';
import { add, button, h, type Child } from '../dom/elements.js';
import { marked } from '../dom/not-finite.js';
import { term } from '../dom/term.js';
import { errorWords, firstWords } from './words.js';
import type { SiteActions } from './row.js';
import { rowsIn } from '../data/not-finite.js';
import type { Proposal, Site, Variant } from '../data/schema.js';
import {
  callWords,
  counted,
  failedWords,
  numberWords,
  placeOf,
  timeWords
} from '../data/words.js';
import phrases from '../data/phrases.json';

const MOST_VARIANTS = 24;
const MOST_SHOWN = 8; // errors and notes that are shown without a disclosure
const MOST_SAMPLES = 6; // that are shown without a click, of sites with a problem
const SHORT_ERROR = 160; // characters that are shown without a disclosure

const APPLY = 'write it into the cell';
const WRITTEN = 'written into the cell: run it again';
const FIRST = 'jump to first';

/** How much is expanded initially. */
export interface Unfolded {
  readonly diagrams: boolean;
}

/** The lines below a site's row; none for most kept calls. */
export function siteDetails(
  site: Site,
  unfolded: Unfolded,
  actions: SiteActions = {}
): HTMLElement[] {
  return [
    ...reasonOf(site, actions.apply),
    ...firstOf(site.errors, errorLine, 'error'),
    ...firstOf(notesOf(site), note => line('note', '•', note), 'note'),
    ...notFiniteOf(site, actions.select),
    ...contextOf(site),
    ...variantsOf(site, unfolded),
    ...samplesOf(site)
  ];
}

/** Notes, and figures for which there is no room beside the number of calls. */
export function notesOf({ notes, figures }: Site): string[] {
  return [...notes, ...figures.flatMap(([words, brief]) => (brief ? [] : words))];
}

/** The button after a sentence that is the advice of a site's proposal; none after others. */
export function writeButtonOf(
  sites: readonly Site[],
  words: string,
  apply: SiteActions['apply']
): Child[] {
  const found = sites.flatMap(site =>
    site.proposals.filter(([, advice]) => advice === words).map(one => [site, one] as const)
  );
  const [first] = found;
  return first ? writeButton(...first, apply) : [];
}

/** A disclosure whose content is built when it is first opened. */
export function disclosure(summary: Child, open: boolean, content: () => Child[]): HTMLElement {
  const node = h('details', { open }, h('summary', {}, summary));
  let filled = false;
  const fill = (): void => {
    if (node.open && !filled) {
      filled = true;
      add(node, content());
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

/** The first lines, and a disclosure of the others. */
function firstOf(
  texts: readonly string[],
  draw: (text: string) => HTMLElement,
  noun: string
): HTMLElement[] {
  const more = texts.slice(MOST_SHOWN);
  const first = texts.slice(0, MOST_SHOWN).map(draw);
  return more.length
    ? [...first, disclosure(counted(more.length, `more ${noun}`), false, () => more.map(draw))]
    : first;
}

/** A button that writes an option into the code, after a sentence; none if nothing can write it. */
function writeButton(site: Site, proposal: Proposal, apply: SiteActions['apply']): Child[] {
  const label = `${APPLY}: ${site.function}, ${placeOf(site)}`;
  const about = JSON.stringify([site.function, site.flavor, proposal[0]]);
  const attributes = { class: 'jaxcb-link', 'aria-label': label, 'data-writes': about };
  const node = button(attributes, () => void apply?.(site, proposal).then(did => did && written(node)), APPLY);
  return apply ? [' · ', node] : [];
}

/** Says it at each button that would write the same. */
function written(node: HTMLElement): void {
  const all = node.closest('.jaxcb-view')?.querySelectorAll<HTMLElement>('[data-writes]') ?? [];
  for (const one of [...all].filter(other => other.dataset['writes'] === node.dataset['writes'])) {
    one.replaceWith(h('span', { class: 'jaxcb-muted' }, WRITTEN));
  }
}

function advice(...words: Child[]): HTMLElement {
  return line('advice', '↳', h('strong', {}, 'What to do: '), ...words);
}

function reasonOf(site: Site, apply: SiteActions['apply']): HTMLElement[] {
  return [
    ...(site.reason ? [h('p', { class: 'jaxcb-site-reason' }, site.reason)] : []),
    ...(site.advice ? [advice(site.advice)] : []),
    ...site.proposals.map(one => advice(one[1], ...writeButton(site, one, apply)))
  ];
}

/** The first call that returned NaN or infinity for finite arguments, and how to find the line. */
function notFiniteOf(site: Site, select: SiteActions['select']): HTMLElement[] {
  const [row, ...others] = rowsIn(site.not_finite_rows);
  const lines: HTMLElement[] = [];
  if (row !== undefined) {
    const label = `${FIRST}: ${site.function}, ${placeOf(site)}`;
    const attributes = { class: 'jaxcb-link', 'aria-label': label };
    const jump = select && [' · ', button(attributes, () => select(row), FIRST)];
    lines.push(line('note', '•', firstWords(site, row, others.length > 0), ...(jump ?? [])));
  }
  if (site.consequence === 'not_finite') {
    lines.push(advice(phrases.find_not_finite));
  }
  return lines;
}

function errorLine(error: string): HTMLElement {
  const short = errorWords(error, SHORT_ERROR);
  if (short === error) {
    return line('error', phrases.signs.raised, error);
  }
  const node = disclosure(failedWords(short), false, () => [h('pre', { tabindex: 0 }, error)]);
  node.classList.add('jaxcb-site-error');
  return node;
}

function contextOf(site: Site): HTMLElement[] {
  const around = site.around.length ? `in ${site.around.join(' › ')}` : '';
  const words: Child[] = [around];
  if (site.crossings && site.crossings !== site.calls) {
    const crossings = counted(site.crossings, 'crossing');
    words.push(around && ' · ', `${callWords(site.calls)} in `, term('crossing', crossings));
  }
  return words.some(Boolean) ? [h('p', { class: 'jaxcb-site-context' }, ...words)] : [];
}

function variantsOf(
  { shapes: variants, variants_ns: times }: Site,
  { diagrams }: Unfolded
): HTMLElement[] {
  const [only, ...more] = variants;
  if (only === undefined) {
    return [];
  }
  if (!more.length) {
    return [variantBlock(only, diagrams)];
  }
  const block = (variant: Variant, place: number): HTMLElement => {
    const ns = times[place];
    const time = ns !== undefined && variant.calls ? timeWords(ns) : '';
    return variantBlock(variant, false, variant.count || callWords(variant.calls), time);
  };
  const list = disclosure(`${numberWords(variants.length)} shapes`, variants.length <= 3, () => [
    ...variants.slice(0, MOST_VARIANTS).map(block),
    variants.length > MOST_VARIANTS &&
      h('p', { class: 'jaxcb-muted' }, `and ${variants.length - MOST_VARIANTS} more shapes`)
  ]);
  list.classList.add('jaxcb-site-variants');
  return [list];
}

/** One variant, with the calls and the time of it if the site has others. */
function variantBlock(variant: Variant, open: boolean, calls = '', time = ''): HTMLElement {
  const { sizes, elements, shapes, methods, placed } = variant;
  const more = placed && h('p', { class: 'jaxcb-site-context' }, placed);
  if (!sizes) {
    const label = calls && h('span', { class: 'jaxcb-muted' }, `${time ? `${calls} · ${time}` : calls}: `);
    return h('div', { class: 'jaxcb-site-variant' }, label, batchingDiagram(variant), more);
  }
  const summary = h(
    'span',
    {},
    `${elements}: `,
    h('code', {}, shapes),
    h('span', { class: 'jaxcb-muted' }, ` vmap, ${methods}`, time && ` · ${time}`)
  );
  const diagram = disclosure(summary, open, () => [batchingDiagram(variant)]);
  return h('div', { class: 'jaxcb-site-variant' }, diagram, more);
}

function samplesOf(site: Site): HTMLElement[] {
  if (!site.sample_values.length) {
    return [];
  }
  const count = site.sample_values.length;
  const title = `values of ${count === 1 ? 'one call' : `${count} calls`}`;
  const items = (): Child[] => [
    h(
      'ul',
      { class: 'jaxcb-site-sample_values' },
      ...site.sample_values.map(([words, failed]) =>
        h('li', { class: failed ? 'jaxcb-bad' : null }, h('code', {}, ...marked(words)))
      )
    )
  ];
  return [disclosure(title, site.consequence !== 'kept' && count <= MOST_SAMPLES, items)];
}
