/** Pins a run, or an earlier one of its cell, and shows how other runs of the cell differ. */

import { button, h, setText, type Child } from '../dom/elements.js';
import { cut } from '../data/parse/conform.js';
import type { Consequence } from '../data/schema.js';
import { callWords, counted, numberWords, placeOf, statusWords, timeWords, toneOf } from '../data/words.js';
import { changedLines } from './code.js';
import { differenceWords, pairsOf, ratioWords, signed, timePerCall, type Pair } from './differences.js';
import { baseOf, isFirstOfCode, type Base } from './history.js';
import type { Run, RunSite } from './run.js';

const MOST_SITES = 100;
const MOST_LINES = 40; // of changed code
const MOST_CHARACTERS = 200; // of such a line

export class Comparison {
  /** The button that pins the run, while none is pinned. */
  readonly button = link('Pin to compare', () => this.pin());
  /** The button, and the menu of earlier runs. */
  readonly actions = h('span', { class: 'jaxcb-compare-menu' });
  /** What differs from the pinned run; hidden while none is pinned. */
  readonly node = h('section', { class: 'jaxcb-compare', 'aria-label': 'Comparison', hidden: true });
  /** The same in a few words, for the summary line; empty while none is pinned. */
  readonly words = h('span', { class: 'jaxcb-summary-part' });
  private readonly menu = h('select', { 'aria-label': 'Compare with an earlier run' });
  private readonly afterMenu = h('select', { 'aria-label': 'Run to compare' });
  private readonly said = h('span');
  private readonly doubt = h('p', { class: 'jaxcb-compare-doubt' });
  private readonly table = h('div');
  private readonly again = link('Pin this run instead', () => this.pin());
  private readonly unpinning = link('Unpin', () => this.unpin());
  private readonly parts = [
    h('p', {}, this.afterMenu, this.said),
    this.table,
    this.doubt,
    h('p', { class: 'jaxcb-compare-actions' }, this.again, this.unpinning)
  ];
  private shown: Run | null = null; // as its recording says; `runs` may say more
  private chosen: Run | null = null;
  private other = ''; // the ids of the shown run, and of the one compared in its place; empty: none is
  private runs: readonly Run[] = [];

  constructor() {
    this.actions.append(this.button, this.menu);
    this.menu.addEventListener('change', () => {
      this.other = '';
      this.pinned = this.runs.find(({ id }) => id === this.menu.value) ?? null;
    });
    this.afterMenu.addEventListener('change', () => {
      const { value } = this.afterMenu;
      this.compared = value && `${this.shown?.id} ${value}`;
    });
    this.offer();
  }

  /** The pinned run; null: none. */
  get pinned(): Run | null {
    return this.chosen;
  }

  set pinned(run: Run | null) {
    this.chosen = run;
    this.draw();
  }

  /** The run that is compared with the pinned one, while the view shows the same run. */
  get compared(): string {
    return this.other;
  }

  set compared(ids: string) {
    this.other = ids;
    this.draw();
  }

  /** The runs of the cell that can be compared, oldest first; the last is the shown one. */
  set history(runs: readonly Run[]) {
    this.runs = runs;
    this.offer();
    this.draw();
  }

  /** Compares with another run: the one that the view shows now. */
  show(run: Run): void {
    this.shown = run;
    this.draw();
  }

  /** Fills the menus; without earlier runs there are none. */
  private offer(): void {
    const earlier = this.runs.slice(0, -1).reverse();
    this.menu.hidden = earlier.length === 0;
    const options = (): HTMLElement[] =>
      earlier.map(run => h('option', { value: run.id }, optionWords(run)));
    this.menu.replaceChildren(h('option', { value: '' }, 'Compare with…'), ...options());
    this.afterMenu.replaceChildren(h('option', { value: '' }, 'this run'), ...options());
  }

  private pin(): void {
    const own = this.complete(this.shown);
    this.pinned = own && { ...own, number: 0 };
    this.unpinning.focus();
  }

  private unpin(): void {
    this.other = '';
    this.pinned = null;
    this.button.focus();
  }

  /** The run with all that the kernel knows of it. */
  private complete(run: Run | null): Run | null {
    return this.runs.find(({ id }) => id === run?.id) ?? run;
  }

  private draw(): void {
    const { pinned } = this;
    const other = this.runs.slice(0, -1).find(({ id }) => `${this.shown?.id} ${id}` === this.other);
    const own = pinned && (other ?? this.complete(this.shown));
    const same = pinned !== null && !other && isRun(this.shown, pinned);
    this.button.hidden = pinned !== null;
    const hidden = pinned === null || own === null;
    if (hidden !== this.node.hidden) {
      this.node.hidden = hidden;
      this.node.replaceChildren(...(hidden ? [] : this.parts));
    }
    this.node.classList.toggle('jaxcb-compare-pinned', same);
    this.again.hidden = same;
    this.afterMenu.hidden = same || this.runs.length < 2;
    this.menu.value = this.runs.find(({ id }) => id === pinned?.id)?.id ?? '';
    this.afterMenu.value = other?.id ?? '';
    this.words.replaceChildren();
    this.table.replaceChildren();
    setText(this.doubt, '');
    if (same) {
      setText(this.said, 'Pinned. The next runs of this cell are compared with this one. ');
    } else if (pinned && own) {
      const base = baseOf({ ...this.complete(pinned)!, number: pinned.number }, own, this.runs);
      const words = differenceWords(base.run, own, base.timed);
      const name = pinned.number ? `run [${pinned.number}]` : 'the pinned run';
      this.words.append(other ? '' : ` · vs ${name.replace(/^the /, '')}: ${words}`);
      setText(this.said, `${this.afterMenu.hidden ? 'Compared' : ' compared'} with ${name}: ${words}`);
      this.table.append(codeNode(base.run, own), table(base, own, name));
      const isFirst = isFirstOfCode(own, this.runs);
      setText(this.doubt, doubtWords(base, name, isFirst ? (other ? `run [${other.number}]` : 'this run') : ''));
    }
  }
}

/**
 * What to know about the times: that one of the runs was the first of its code.
 *
 * Args:
 *   earlier: how a sentence names the earlier run.
 *   first: how it names the later one, if that was the first of its code.
 */
function doubtWords({ run, timed, isFirst }: Base, earlier: string, first: string): string {
  const why = (name: string): string => `${name} was the first of its code, which is often slower.`;
  if (timed !== run) {
    return `Times are compared with those of run [${timed.number}]: ${why(earlier)}`;
  }
  const name = isFirst && !first ? earlier : isFirst ? '' : first;
  return name && why(`${name.charAt(0).toUpperCase()}${name.slice(1)}`);
}

/** The lines of the cell that changed between two runs, or that none has. */
function codeNode(before: Run, after: Run): HTMLElement {
  if (before.code === null || after.code === null) {
    return h('p', {}, 'The code of these runs is not known, or too long to compare.');
  }
  const changes = changedLines(before.code, after.code);
  if (!changes.length) {
    return h('p', {}, 'The code of the cell is the same.');
  }
  const lines = changes.slice(0, MOST_LINES).map(({ added, text }) =>
    h(added ? 'ins' : 'del', {}, `${added ? '+' : '−'} ${cut(text, MOST_CHARACTERS)}`)
  );
  const left = changes.length - lines.length;
  return h(
    'div',
    { class: 'jaxcb-compare-code', role: 'group', 'aria-label': 'Changes of the code' },
    ...lines,
    left > 0 && h('span', {}, `and ${counted(left, 'more line')}`)
  );
}

function isRun(own: Run | null, pinned: Run): boolean {
  return own === pinned || (own !== null && own.id !== '' && own.id === pinned.id);
}

/** `[12] 40 calls · 3 ms`: a run in the menus. */
function optionWords({ number, sites }: Run): string {
  const sum = (figure: (site: RunSite) => number): number =>
    sites.reduce((all, site) => all + figure(site), 0);
  const time = sum(site => site.total ?? 0);
  return `[${number}] ${callWords(sum(site => site.calls))} · ${timeWords(time)}`;
}

function link(text: string, act: () => unknown): HTMLElement {
  return button({ class: 'jaxcb-link' }, act, text);
}

/**
 * The figures of each site in both runs; times are those of a call.
 *
 * Args:
 *   earlier: how a sentence names the earlier run.
 */
function table({ run, timed }: Base, own: Run, earlier: string): HTMLElement {
  const pairs = pairsOf(run.sites, own.sites);
  const times = new Map(pairsOf(timed.sites, own.sites).map(({ before, after }) => [after, before]));
  const hasP95 = pairs.some(({ before, after }) => before?.p95 && after?.p95); // the kernel is gone
  const titles = ['Site', 'Status', 'Calls', ...(hasP95 ? ['p95'] : []), 'Time per call'];
  const rows = pairs
    .slice(0, MOST_SITES)
    .map(pair => row(pair, (pair.after && times.get(pair.after)) ?? pair.before, earlier, hasP95));
  const left = pairs.length - rows.length;
  return h(
    'div',
    { class: 'jaxcb-compare-scroll' },
    h(
      'table',
      { class: 'jaxcb-compare-table' },
      h('thead', {}, h('tr', {}, ...titles.map(title => h('th', { scope: 'col' }, title)))),
      h('tbody', {}, ...rows)
    ),
    left > 0 && h('p', {}, `and ${counted(left, 'more site')}`)
  );
}

/** Args: timed: the site in the run whose times are compared. */
function row({ before, after }: Pair, timed: RunSite | null, earlier: string, hasP95: boolean): HTMLElement {
  const site = (after ?? before)!;
  return h(
    'tr',
    {},
    h('th', { scope: 'row' }, `${site.function}, ${placeOf(site)}`),
    h('td', {}, ...statuses(before, after, earlier)),
    h('td', {}, ...calls(before?.calls ?? null, after?.calls ?? null)),
    ...(hasP95 ? [h('td', {}, ...times(timed?.p95, after?.p95))] : []),
    h('td', {}, ...times(timePerCall(timed), timePerCall(after)))
  );
}

/** `● → ⚠ unused`; one status if it is the same; or that the site is in one run only. */
function statuses(before: Pair['before'], after: Pair['after'], earlier: string): Child[] {
  if (!after) {
    return [h('em', {}, `only in ${earlier}`)];
  }
  const now = status(after.consequence);
  if (!before) {
    return [h('em', {}, 'new'), ' ', now];
  }
  return before.consequence === after.consequence ? [now] : [status(before.consequence), ' → ', now];
}

function status(consequence: Consequence): HTMLElement {
  const words = statusWords(consequence);
  return h('span', { class: `jaxcb-status jaxcb-tone-${toneOf(consequence)}` }, words);
}

function calls(before: number | null, after: number | null): Child[] {
  const words = [before, after].flatMap(count => (count === null ? [] : numberWords(count)));
  const known = before !== null && after !== null;
  return known && before !== after ? change(words, signed(after - before)) : [words[0]];
}

function times(before: number | null | undefined, after: number | null | undefined): Child[] {
  const words = [before, after].flatMap(ns => (ns ? timeWords(ns) : []));
  const ratio = ratioWords('', before ?? null, after ?? null);
  return ratio ? change(words, ratio) : [words[0]];
}

/** `100 → 140  +40`. */
function change(words: readonly string[], by: string): Child[] {
  const figures = words.flatMap((word, nth) => {
    const figure = h('span', { class: 'jaxcb-compare-figure' }, word); // a line may end after it
    return nth ? [' → ', figure] : [figure];
  });
  return [h('span', { class: 'jaxcb-compare-figures' }, ...figures), ' ', h('strong', {}, by)];
}
