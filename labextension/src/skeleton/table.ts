/** Shows the JSON of a recording as Python wrote it: one row for each line of user code. */

import { h } from '../view/dom/elements.js';
import type { FactsView, MeasuredView, ShapeView, SiteView } from './types.js';

const MOST_ROWS = 2000; // of sites, and shapes of a site
const MOST_BARS = 500; // of all calls

/**
 * Returns the table. Nothing is checked before it is shown: a value of another type shows as "?",
 * and one sentence says so.
 */
export function table(facts: Partial<FactsView>, measured: Partial<MeasuredView>): HTMLElement {
  let damaged = false;

  function word(value: unknown): string {
    damaged ||= typeof value !== 'string';
    return typeof value === 'string' ? value : '?';
  }

  function items<T>(value: unknown, most = MOST_ROWS): T[] {
    damaged ||= !Array.isArray(value);
    return Array.isArray(value) ? value.slice(0, most) : [];
  }

  function joined(...words: unknown[]): string {
    return words.map(word).filter(Boolean).join(' · ');
  }

  function row(site: Partial<SiteView>, place: number): HTMLElement {
    const shapes = items<Partial<ShapeView>>(site.shapes);
    const cells = [
      joined(site.function, site.flavor),
      joined(site.where),
      joined(site.status),
      shapes.map(shape => joined(shape.arrays, shape.vmap, shapes.length > 1 ? shape.calls : '')).join('; '),
      joined(site.reason, site.advice, ...items(site.errors)),
      joined(times[place])
    ];
    const bars = h('td', { class: 'jaxcb-bars' }, ...calls.map(call => call[0] === place && bar(call)));
    return h(
      'tr',
      { class: `jaxcb-tone-${word(site.tone)}`, 'data-line': Number(site.line) },
      ...cells.map(text => h('td', {}, text)),
      bars
    );
  }

  function bar([, start, duration]: number[]): HTMLElement {
    const percent = (ns: number): string => `${(100 * ns) / end}%`;
    return h('span', { style: `left: ${percent(start!)}; width: max(1px, ${percent(duration!)})` });
  }

  const times = items<string>(measured.times);
  const columns = [measured.site, measured.start_ns, measured.duration_ns].map(c => items<number>(c, MOST_BARS));
  const calls = columns[0]!.map((_, call) => columns.map(column => Number(column[call])));
  const end = Math.max(1, ...calls.map(([, start, duration]) => start! + duration!));
  const rows = items<Partial<SiteView>>(facts.sites).map((site, place) => row(site ?? {}, place));
  const node = h('table', { class: 'jaxcb-skeleton' }, h('caption', {}, word(facts.headline)), ...rows);
  if (damaged) {
    node.createTFoot().insertRow().insertCell().textContent = 'Values that are missing or damaged show as "?".';
  }
  return node;
}
