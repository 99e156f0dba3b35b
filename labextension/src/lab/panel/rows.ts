/** The rows of the panel. They are kept and refilled, so that focus and open rows are kept. */

import { dotted, h, resize, setText } from '../../view/dom/elements.js';
import { meaning } from '../../view/dom/term.js';
import {
  callWords,
  counted,
  failedWords,
  elidedWords,
  joined,
  placeIn,
  placeOf,
  siteStatus,
  timeWords,
  siteTone
} from '../../view/data/words.js';
import type { Site } from '../../view/data/schema.js';
import type { Callback } from '../kernel/snapshot.js';
import { sentences, siteFigures, worstTone } from '../words.js';

/** Goes to a line of the notebook. */
export type Jump = (cell: string, line: number, source: string) => void;

/** One call site with its status, and a button to its line. */
export class SiteRow {
  readonly node = h('li', { class: 'jaxcb-callsite', tabindex: -1 });
  private readonly status = h('span', { class: 'jaxcb-callsite-status' });
  private readonly where = h('span', { class: 'jaxcb-callsite-where' });
  private readonly source = h('code', { class: 'jaxcb-callsite-source' });
  private readonly button = h('button', { type: 'button', class: 'jaxcb-callsite-jump' });
  private readonly figures = h('div', { class: 'jaxcb-callsite-figures' });
  private readonly notes = h('div', { class: 'jaxcb-callsite-notes' });
  private site: Site | null = null;

  constructor(jump: Jump) {
    this.button.append(this.status, this.where, this.source);
    this.node.append(this.button, this.figures, this.notes);
    this.button.addEventListener('click', () => {
      if (this.site?.cell_id) {
        jump(this.site.cell_id, this.site.cell_line, this.site.source);
      }
    });
  }

  /** Shows `site`, in the cell with that label (empty: unknown). */
  update(site: Site, label: string): void {
    this.site = site;
    this.node.className = `jaxcb-callsite jaxcb-tone-${siteTone(site)}`;
    setText(this.status, siteStatus(site));
    setText(this.where, label ? placeIn(label, placeOf(site)) : placeOf(site));
    setText(this.source, site.source);
    this.button.title = site.cell_id ? `${site.source}\nGo to this line` : site.source;
    this.button.toggleAttribute('disabled', site.cell_id === null);
    setDotted(this.figures, joined([siteFigures(site), elidedWords(site)]));
    this.figures.title = site.elided > 0 ? meaning('elided') : '';
    setLines(this.notes, [...site.errors, ...sentences(site.reason, site.advice)]);
  }

  focus(): void {
    (this.site?.cell_id ? this.button : this.node).focus();
  }
}

/** One callback with its sites. */
export class CallbackRow {
  readonly node = h('li', { class: 'jaxcb-callback' });
  private readonly details = h('details', { open: true });
  private readonly summary = h('summary', { class: 'jaxcb-callback-summary' });
  private readonly name = h('span', { class: 'jaxcb-callback-name' });
  private readonly flavor = h('span', { class: 'jaxcb-callback-flavor' });
  private readonly figures = h('span', { class: 'jaxcb-callback-figures' });
  private readonly alarms = h('span', { class: 'jaxcb-callback-alarms' });
  private readonly options = h('code', { class: 'jaxcb-callback-options' });
  private readonly button = h('button', { type: 'button', class: 'jaxcb-callback-jump' });
  private readonly list = h('ul', { class: 'jaxcb-callsites' });
  private readonly none = h('p', { class: 'jaxcb-callback-none' }, 'Not used in a program yet.');
  private readonly sites: SiteRow[] = [];
  private callback: Callback | null = null;

  constructor(private readonly jump: Jump) {
    const title = h('span', { class: 'jaxcb-callback-title' }, this.name, this.flavor);
    this.summary.append(title, this.figures, this.alarms);
    const about = h('div', { class: 'jaxcb-callback-about' }, this.options, this.button);
    this.details.append(this.summary, about, this.none, this.list);
    this.node.append(this.details);
    this.button.addEventListener('click', () => {
      if (this.callback?.cell) {
        jump(this.callback.cell, this.callback.line, '');
      }
    });
  }

  /** Shows the callback and its sites; `labels` are those of their cells, by id. */
  update(
    callback: Callback,
    sites: readonly Site[],
    labels: ReadonlyMap<string, string>
  ): void {
    this.callback = callback;
    setText(this.name, callback.name);
    setText(this.flavor, callback.flavor);
    setText(this.options, callback.options);
    const time = callback.calls > 0 && callback.host_ns > 0 ? timeWords(callback.host_ns) : '';
    const figures = [callWords(callback.calls), time, counted(callback.sites.length, 'site')];
    setDotted(this.figures, joined(figures));
    setText(this.alarms, alarmWords(callback));
    this.alarms.title = callback.elided > 0 ? meaning('elided') : '';
    const worst = worstTone(sites);
    // What was elided is not green, whatever the calls that were made are.
    this.alarms.className = `jaxcb-callback-alarms jaxcb-tone-${worst === 'kept' ? 'quiet' : worst}`;
    const where = placeIn(labels.get(callback.cell ?? '') ?? '', callback.where || `line ${callback.line}`);
    setText(this.button, callback.cell ? `registered at ${where}` : '');
    this.button.hidden = callback.cell === null;
    this.none.hidden = sites.length > 0;
    resize(this.list, this.sites, sites.length, () => new SiteRow(this.jump));
    sites.forEach((site, place) => this.sites[place]!.update(site, labels.get(site.cell_id ?? '') ?? ''));
  }

  /** Opens the row and focuses one of its sites; null: the callback itself. */
  show(site: number | null): HTMLElement {
    this.details.open = true;
    const row = site === null ? null : this.sites[site];
    (row ?? this.summary).focus();
    return row?.node ?? this.node;
  }
}

function alarmWords(callback: Callback): string {
  return joined([
    callback.errors > 0 ? failedWords(counted(callback.errors, 'error')) : '',
    elidedWords(callback)
  ]);
}

function setDotted(node: HTMLElement, words: string): void {
  if (node.textContent !== words) {
    node.replaceChildren(...dotted(words));
  }
}

function setLines(node: HTMLElement, lines: readonly string[]): void {
  const now = [...node.children].map(child => child.textContent);
  if (now.length !== lines.length || now.some((line, place) => line !== lines[place])) {
    node.replaceChildren(...lines.map(line => h('p', {}, line)));
  }
}
