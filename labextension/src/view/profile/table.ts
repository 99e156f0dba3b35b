/** The wall time as a table: each kind with its parts, of which a few are shown at first. */

import { kindColour } from '../colours.js';
import type { Profile, ProfileKind, ProfilePart } from '../data/schema.js';
import { numberWords, timeWords } from '../data/words.js';
import { button, h, set, setText, type Child } from '../dom/elements.js';
import { term } from '../dom/term.js';
import type { Mark } from './mark.js';
import { partName, wallShare } from './words.js';

const MOST_FIRST = 3; // parts of a kind that are shown before a click
const DIFFERENT = 0.05; // of the wall time, from which busy time is shown too
const REST = 'other'; // name of the part that sums up small ones

interface Row {
  readonly part: ProfilePart;
  readonly place: number; // in the parts of the profile
}

/**
 * The table of a profile.
 *
 * Args:
 *   hovered: called with what the row below the pointer is about; null: none.
 */
export function profileTable(
  profile: Profile,
  hovered: (mark: Mark | null) => void
): HTMLElement {
  const busy = profile.parts.some(hasBusy);
  const titles = ['What', 'Time', 'Share', 'Count', ...(busy ? ['Busy'] : [])];
  const heads = titles.map(title => h('th', { scope: 'col' }, title));
  if (busy) {
    heads.at(-1)!.title = 'summed over threads and devices';
  }
  const table = h(
    'table',
    { class: 'jaxcb-profile-table', 'aria-label': 'Wall time by kind' },
    h('thead', {}, h('tr', {}, ...heads)),
    ...profile.kinds.map((_, kind) => group(profile, kind, titles.length, hovered))
  );
  return h('div', { class: 'jaxcb-profile-scroll' }, table);
}

/** Whether the time summed over threads and devices is not about the wall time. */
function hasBusy({ busy_ns, wall_ns }: ProfilePart): boolean {
  return busy_ns > 0 && Math.abs(busy_ns - wall_ns) > DIFFERENT * wall_ns;
}

/** The rows of one kind. */
function group(
  profile: Profile,
  place: number,
  columns: number,
  hovered: (mark: Mark | null) => void
): HTMLElement {
  const kind = profile.kinds[place]!;
  const own = profile.parts.flatMap((part, at) => (part.kind === place ? [{ part, place: at }] : []));
  const only = own.length === 1 && saysNothing(own[0]!.part, kind) ? own[0]!.part : null;
  const body = h('tbody', {}, marked(kindRow(profile, kind, only, columns), hovered, place, null));
  body.style.setProperty('--jaxcb-own', `var(${kindColour(kind.id)})`);
  body.addEventListener('pointerleave', () => hovered(null));
  if (only) {
    return body;
  }
  const rows = own.map(({ part, place: at }: Row) =>
    marked(partRow(profile, kind, part, columns), hovered, place, at)
  );
  const rest = rows.slice(MOST_FIRST);
  body.append(...rows, ...(rest.length ? [marked(moreRow(kind, rest, columns), hovered, place, null)] : []));
  return body;
}

/** Whether the row of the only part would repeat the row of its kind. */
function saysNothing({ name, where }: ProfilePart, kind: ProfileKind): boolean {
  return !where && ['', REST, kind.id, kind.name].includes(name);
}

/** The row of a kind; `only`: its only part, if that has no row. */
function kindRow(
  profile: Profile,
  kind: ProfileKind,
  only: ProfilePart | null,
  columns: number
): HTMLElement {
  const swatch = h('span', { class: 'jaxcb-swatch', 'aria-hidden': 'true' });
  const title = h('th', { scope: 'rowgroup' }, swatch, kind.id === 'crossing' ? term('crossing', kind.name) : h('span', {}, kind.name));
  const figures = figuresOf(profile, kind.wall_ns, only, columns);
  return h('tr', { class: 'jaxcb-profile-kind' }, title, ...figures);
}

function partRow(
  profile: Profile,
  kind: ProfileKind,
  part: ProfilePart,
  columns: number
): HTMLElement {
  const name = h(isCode(part, kind) ? 'code' : 'span', {}, partName(profile, part));
  const where = h('span', { class: 'jaxcb-profile-where' }, part.where);
  const title = h('th', { scope: 'row' }, name, ...(part.where ? [' ', where] : []));
  return h('tr', {}, title, ...figuresOf(profile, part.wall_ns, part, columns));
}

/** Whether the name of a part is that of a function, program or operation. */
function isCode({ name }: ProfilePart, kind: ProfileKind): boolean {
  return !['', REST, kind.name].includes(name) && !name.includes(' ');
}

function figuresOf(
  profile: Profile,
  ns: number,
  part: ProfilePart | null,
  columns: number
): HTMLElement[] {
  const count = part?.count ? numberWords(part.count) : '';
  const busy = part && hasBusy(part) ? timeWords(part.busy_ns) : '';
  const words: Child[] = [timeWords(ns), wallShare(profile, ns), count, busy];
  return words.slice(0, columns - 1).map(each => h('td', {}, each));
}

/** A button that shows the other parts, and hides them again. */
function moreRow(kind: ProfileKind, rest: readonly HTMLElement[], columns: number): HTMLElement {
  const words = `${numberWords(rest.length)} more`;
  const draw = (shown: boolean): void => {
    const text = shown ? 'fewer' : words;
    const label = { 'aria-label': `${text}: ${kind.name}`, 'aria-expanded': String(shown) };
    set(toggle, label);
    setText(toggle, text);
    rest.forEach(row => (row.hidden = !shown));
  };
  const toggle = button({ class: 'jaxcb-link' }, () => draw(rest[0]!.hidden === true));
  draw(false);
  return h('tr', { class: 'jaxcb-profile-more' }, h('td', { colspan: columns }, toggle));
}

function marked(
  row: HTMLElement,
  hovered: (mark: Mark | null) => void,
  kind: number,
  part: number | null
): HTMLElement {
  row.addEventListener('pointerenter', () => hovered({ kind, part }));
  return row;
}
