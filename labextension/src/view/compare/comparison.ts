/** Pins a run, or an earlier one of its cell, and shows how other runs of the cell differ. */

import { button, h, setText, type Child } from '../dom/elements.js';
import type { Consequence } from '../data/schema.js';
import { callWords, counted, numberWords, placeOf, statusWords, timeWords, toneOf } from '../data/words.js';
import { differenceWords, pairsOf, ratioWords, signed, type Pair } from './differences.js';
import type { PastRun } from './history.js';
import type { Run } from './run.js';

const MOST_SITES = 100;

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
  private readonly table = h('div');
  private readonly again = link('Pin this run instead', () => this.pin());
  private readonly unpinning = link('Unpin', () => this.unpin());
  private readonly parts = [
    h('p', {}, this.afterMenu, this.said),
    this.table,
    h('p', { class: 'jaxcb-compare-actions' }, this.again, this.unpinning)
  ];
  private own: Run | null = null; // null: not computed
  private ownRun: (() => Promise<Run>) | null = null;
  private chosen: Run | null = null;
  private other: Run | null = null; // to compare with the pinned one; null: the shown run
  private runs: readonly PastRun[] = [];

  constructor() {
    this.actions.append(this.button, this.menu);
    this.menu.addEventListener('change', () => {
      this.other = null;
      this.pinned = this.runs.find(({ id }) => id === this.menu.value) ?? null;
    });
    this.afterMenu.addEventListener('change', () => {
      this.other = this.runs.find(({ id }) => id === this.afterMenu.value) ?? null;
      this.draw();
    });
    this.offer();
  }

  /** The pinned run; null: none. */
  get pinned(): Run | null {
    return this.chosen;
  }

  set pinned(run: Run | null) {
    this.chosen = run;
    void this.refresh();
  }

  /** The runs of the cell that can be compared, oldest first; the last is the shown one. */
  set history(runs: readonly PastRun[]) {
    this.runs = runs;
    this.other = null;
    this.offer();
    this.draw();
  }

  /** Compares with another run: the one that the view shows now. */
  show(ownRun: () => Promise<Run>): void {
    this.ownRun = ownRun;
    this.own = null;
    void this.refresh();
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

  private async pin(): Promise<void> {
    this.chosen = await this.current();
    await this.refresh();
    this.unpinning.focus();
  }

  private unpin(): void {
    this.chosen = this.other = null;
    this.draw();
    this.button.focus();
  }

  private async refresh(): Promise<void> {
    if (this.chosen) {
      await this.current();
    }
    this.draw();
  }

  /** The figures of the shown run, computed once; it may have been replaced meanwhile. */
  private async current(): Promise<Run | null> {
    const { ownRun } = this;
    const run = this.own ?? ((await ownRun?.()) ?? null);
    if (ownRun === this.ownRun) {
      this.own = run;
    }
    return run;
  }

  private draw(): void {
    const { pinned } = this;
    const own = pinned && this.own && (this.other ?? this.own);
    const same = pinned !== null && !this.other && isRun(own, pinned);
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
    this.afterMenu.value = this.other?.id ?? '';
    this.words.replaceChildren();
    this.table.replaceChildren();
    if (same) {
      setText(this.said, 'Pinned. The next runs of this cell are compared with this one. ');
    } else if (pinned && own) {
      const words = differenceWords(pinned, own);
      const name = pinned.number ? `run [${pinned.number}]` : 'the pinned run';
      this.words.append(this.other ? '' : ` · vs ${name.replace(/^the /, '')}: ${words}`);
      setText(this.said, `${this.afterMenu.hidden ? 'Compared' : ' compared'} with ${name}: ${words}`);
      this.table.append(table(pairsOf(pinned.sites, own.sites), name));
    }
  }
}

function isRun(own: Run | null, pinned: Run): boolean {
  return own === pinned || (own !== null && own.id !== '' && own.id === pinned.id);
}

/** `[12] 40 calls · 3 ms`: a run in the menus. */
function optionWords({ number, sites }: PastRun): string {
  const sum = (figure: (site: PastRun['sites'][number]) => number): number =>
    sites.reduce((all, site) => all + figure(site), 0);
  const time = sum(site => site.total ?? 0);
  return `[${number}] ${callWords(sum(site => site.calls))} · ${timeWords(time)}`;
}

function link(text: string, act: () => unknown): HTMLElement {
  return button({ class: 'jaxcb-link' }, act, text);
}

/**
 * The figures of each site in both runs.
 *
 * Args:
 *   earlier: how a sentence names the earlier run.
 */
function table(pairs: readonly Pair[], earlier: string): HTMLElement {
  const hasP95 = pairs.some(({ before, after }) => before?.p95 && after?.p95); // the kernel keeps none
  const titles = ['Site', 'Status', 'Calls', ...(hasP95 ? ['p95'] : []), 'Time'];
  const rows = pairs.slice(0, MOST_SITES).map(pair => row(pair, earlier, hasP95));
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

function row({ before, after }: Pair, earlier: string, hasP95: boolean): HTMLElement {
  const site = (after ?? before)!;
  return h(
    'tr',
    {},
    h('th', { scope: 'row' }, `${site.function}, ${placeOf(site)}`),
    h('td', {}, ...statuses(before, after, earlier)),
    h('td', {}, ...calls(before?.calls ?? null, after?.calls ?? null)),
    ...(hasP95 ? [h('td', {}, ...times(before?.p95, after?.p95))] : []),
    h('td', {}, ...times(before?.total, after?.total))
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
