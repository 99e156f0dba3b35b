/** The element at the end of a line of code; it does not affect the layout of the line. */

import { WidgetType } from '@codemirror/view';
import { button, h } from '../../view/dom/elements.js';
import { smallDiagram } from '../../view/sites/batching.js';
import { joined } from '../../view/data/words.js';
import type { Note, Place } from './notes.js';

const EDITED = 'the cell was edited after this run';
const SAVED = 'From a saved host trace; this kernel has not run it';

/** Shows a place in the host trace of its cell, or in the panel. */
export type Open = (place: Place, inPanel: boolean) => void;

/** The badge of one line: each note is a button that opens the host trace; with Shift, the panel. */
export class Badge extends WidgetType {
  constructor(
    readonly notes: readonly Note[],
    readonly edited: boolean,
    readonly saved: boolean,
    private readonly open: Open
  ) {
    super();
  }

  override eq(other: Badge): boolean {
    const same =
      this.notes === other.notes && this.edited === other.edited && this.saved === other.saved; // on most keys
    return same || this.content === other.content;
  }

  override toDOM(): HTMLElement {
    const row = h('span', { class: 'jaxcb-badge-row' });
    const holder = h('span', { class: 'jaxcb-badge-holder' }, row);
    const node = h('span', { class: 'jaxcb-badge', role: 'note', contenteditable: 'false' }, holder);
    node.addEventListener('mousedown', event => event.preventDefault());
    node.addEventListener('click', event => {
      const badge = shown.get(node);
      const button = (event.target as Element).closest('button');
      const note = badge?.drawn[[...row.children].indexOf(button as Element)];
      if (badge && note?.place) {
        badge.open(note.place, (event as MouseEvent).shiftKey);
      }
    });
    this.fill(node);
    return node;
  }

  // Counts change twice a second. Buttons are kept, else a click that began on one would be lost.
  override updateDOM(node: HTMLElement): boolean {
    this.fill(node);
    return true;
  }

  override ignoreEvent(): boolean {
    return true;
  }

  /** The notes; those that look the same are one, which says of how many call sites, if all is well. */
  private get drawn(): readonly Note[] {
    const same = (one: Note, other: Note): boolean => one.sign === other.sign && one.text === other.text;
    return this.notes.flatMap((note, nth, all) => {
      const alike = all.filter(other => same(note, other));
      const sites = alike.length > 1 && note.tone !== 'error' ? ` · ${alike.length} sites` : '';
      return alike[0] === all[nth] ? [{ ...note, text: note.text + sites }] : [];
    });
  }

  private get content(): string {
    return JSON.stringify([this.notes, this.edited, this.saved]);
  }

  private fill(node: HTMLElement): void {
    shown.set(node, this);
    const row = rowOf(node);
    const { drawn } = this;
    while (row.children.length > drawn.length) {
      row.lastElementChild!.remove();
    }
    while (row.children.length < drawn.length) {
      row.append(h('button', { type: 'button', tabindex: -1 }));
    }
    drawn.forEach((note, place) => this.fillButton(row.children[place]!, note));
    node.classList.toggle('jaxcb-badge-edited', this.edited);
    node.classList.toggle('jaxcb-badge-saved', this.saved);
    const what = this.notes.some(note => note.place) ? 'JAX callbacks' : 'JAX values';
    node.setAttribute('aria-label', this.edited ? `${what}; ${EDITED}` : what);
  }

  private fillButton(button: Element, note: Note): void {
    button.setAttribute('aria-disabled', String(note.place === null));
    button.className = `jaxcb-badge-note jaxcb-tone-${note.tone}${note.filled ? ' jaxcb-badge-filled' : ''}`;
    const sign = note.sign ? [h('span', { class: 'jaxcb-badge-sign' }, note.sign), ' '] : [];
    button.replaceChildren(...sign, note.text);
    const vmap = note.vmap ? [note.vmap.elements] : [];
    const edited = this.edited ? [EDITED] : [];
    const spoken = [note.title, note.text, ...note.details, ...vmap, ...edited];
    button.setAttribute('aria-label', spoken.map(text => text.replace(/\.$/, '')).join('. '));
  }
}

const shown = new WeakMap<HTMLElement, Badge>();

/** The element of a badge that holds its buttons. */
export function rowOf(badge: HTMLElement): HTMLElement {
  return badge.firstElementChild!.firstElementChild as HTMLElement;
}

/** Whether a note of the badge with these notes is cut, or the badge is not drawn. */
export function isCut(within: HTMLElement, notes: readonly Note[]): boolean {
  const all = [...within.querySelectorAll<HTMLElement>('.jaxcb-badge')];
  const badge = all.find(node => shown.get(node)?.notes.includes(notes[0]!));
  const parts = badge ? [rowOf(badge), ...rowOf(badge).children] : [];
  return !badge || parts.some(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth);
}

/** What a line says that the text of the badge does not. */
function unsaid(line: string, text: string): string {
  const said = [text, text.replace(/^\S+: /, '')].flatMap(words => [words, ...words.split(/ · |: /)]);
  return joined(line.split(' · ').filter(part => !said.includes(part)));
}

/** The tooltip of a badge: its notes, in full if they are `cut`, otherwise what they leave out. */
export function tooltipNode(
  notes: readonly Note[],
  cut: boolean,
  cellEdited: boolean,
  saved: boolean,
  open: Open
): HTMLElement {
  const sections = notes.map(note =>
    h(
      'section',
      { class: `jaxcb-tip-note jaxcb-tone-${note.tone}` },
      h('strong', {}, note.sign ? `${note.sign} ${note.title}` : note.title),
      ...(cut ? note.details : note.details.map(line => unsaid(line, note.text)))
        .filter(Boolean)
        .map(line => h('p', {}, line)),
      note.vmap?.diagram &&
        h('div', { class: 'jaxcb-view jaxcb-tip-vmap' }, smallDiagram(note.vmap, note.vmap.diagram)),
      note.place && panelButton(() => open(note.place!, true))
    )
  );
  const old = saved && h('p', { class: 'jaxcb-tip-edited' }, `${SAVED}.`);
  const warning = cellEdited && h('p', { class: 'jaxcb-tip-edited' }, `Outdated: ${EDITED}.`);
  return h('div', { class: 'jaxcb-tip', role: 'tooltip' }, ...sections, old, warning);
}

function panelButton(open: () => void): HTMLElement {
  const title = 'Shift and a click on the badge does the same';
  return button({ class: 'jaxcb-tip-panel', title }, open, 'Show in the panel');
}
