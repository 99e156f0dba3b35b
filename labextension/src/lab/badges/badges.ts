/** Badges in one cell's editor: they move with edits, and are dimmed once the cell has changed. */

import { Facet, StateEffect, StateField } from '@codemirror/state';
import type { EditorState, Extension, Text, Transaction } from '@codemirror/state';
import { Decoration, EditorView, hoverTooltip, ViewPlugin } from '@codemirror/view';
import type { DecorationSet, PluginValue, Tooltip } from '@codemirror/view';
import { edited, lineEnd, nearestIn, originAt, trackedEnd, type Origin } from './anchors.js';
import { Badge, isCut, tooltipNode, type Open } from './badge.js';
import type { CellNotes, LineNotes } from './notes.js';
import { fitBadges } from './room.js';

/** Provides the badges of one cell, and handles clicks on them. */
export interface Source {
  notes(): CellNotes | null;
  shown(): boolean; // whether the user wants badges
  on(listener: () => void): () => void;
  readonly open: Open;
}

interface Placed {
  readonly line: LineNotes;
  readonly end: number; // in the current document
}

interface Badges {
  readonly notes: CellNotes | null;
  readonly shown: boolean;
  readonly origin: Origin | null;
  readonly edited: boolean;
  readonly placed: readonly Placed[];
  readonly decorations: DecorationSet;
}

const refresh = StateEffect.define();

const sourceOf = Facet.define<Source, Source>({ combine: sources => sources[0]! });

const field = StateField.define<Badges>({
  create: state => refreshed(state.facet(sourceOf), state.doc, null),
  update: updated,
  provide: own => EditorView.decorations.from(own, value => value.decorations)
});

/** The editor extension of one code cell. */
export function badges(source: Source): Extension {
  const hover = hoverTooltip((view, pos, side) => tooltip(view, pos, side), {
    hoverTime: 250
  });
  return [sourceOf.of(source), field, ViewPlugin.define(follower), hover];
}

/** The current number of a line of the executed source; null if edits were not followed. */
export function trackedLine(state: EditorState, line: number, source: string): number | null {
  const origin = state.field(field, false)?.origin ?? null;
  const end = origin && trackedEnd(origin, line, source);
  return end === null ? null : state.doc.lineAt(end).number;
}

/** Opens what the badge of the cursor's line opens; false if it has none. */
export function openAtCursor(state: EditorState, inPanel: boolean): boolean {
  const { from, to } = state.doc.lineAt(state.selection.main.head);
  const placed = state.field(field, false)?.placed ?? [];
  const notes = placed.filter(({ end }) => from <= end && end <= to).flatMap(({ line }) => line.notes);
  const place = notes.find(note => note.place)?.place ?? null;
  if (place) {
    state.facet(sourceOf).open(place, inPanel);
  }
  return place !== null;
}

function updated(value: Badges, transaction: Transaction): Badges {
  const { docChanged, effects, newDoc, state } = transaction;
  const since = value.origin && docChanged ? edited(value.origin, transaction.changes) : value.origin;
  const source = state.facet(sourceOf);
  if (effects.some(effect => effect.is(refresh))) {
    return refreshed(source, newDoc, since);
  }
  return docChanged ? place(source, value.notes, value.shown, newDoc, since) : value;
}

function refreshed(source: Source, doc: Text, before: Origin | null): Badges {
  return place(source, source.notes(), source.shown(), doc, before);
}

function place(
  source: Source,
  notes: CellNotes | null,
  shown: boolean,
  doc: Text,
  before: Origin | null
): Badges {
  if (notes === null) {
    const decorations = Decoration.none;
    return { notes, shown, origin: null, edited: false, placed: [], decorations };
  }
  const known = before?.crc === notes.crc ? before : null;
  const same = known && !doc.eq(known.doc) ? null : originAt(doc, notes.crc);
  const origin = same ?? known;
  const nearest = nearestIn(doc);
  const placed = notes.lines.flatMap(line => {
    const end = lineEnd(origin, doc, line.line, line.source, nearest);
    return end === null ? [] : [{ line, end }];
  });
  const wasEdited = same === null && notes.crc !== null;
  const widgets = placed.map(({ line, end }) => {
    const badge = new Badge(line.notes, wasEdited, notes.saved, source.open);
    return Decoration.widget({ widget: badge, side: 1 }).range(end);
  });
  const decorations = shown ? Decoration.set(widgets, true) : Decoration.none;
  return { notes, shown, origin, edited: wasEdited, placed, decorations };
}

function tooltip({ state, contentDOM }: EditorView, pos: number, side: number): Tooltip | null {
  const value = state.field(field);
  const notes = value.placed.filter(({ end }) => end === pos).flatMap(({ line }) => line.notes);
  if (side < 0 || notes.length === 0 || value.decorations.size === 0) {
    return null;
  }
  const create = (): { dom: HTMLElement } => ({
    dom: tooltipNode(notes, isCut(contentDOM, notes), value.edited, value.notes!.saved, state.facet(sourceOf).open)
  });
  return { pos, above: false, create };
}

// Editors are created when scrolled into view. A source may notify while an editor updates, when it
// must not dispatch, so the refresh is queued.
function follower(view: EditorView): PluginValue {
  const source = view.state.facet(sourceOf);
  let alive = true;
  let queued = false;
  let last = contentOf(source);
  const update = (): void => {
    queued = false;
    const now = contentOf(source);
    if (alive && now !== last) {
      last = now;
      view.dispatch({ effects: refresh.of(null) });
    }
  };
  const off = source.on(() => {
    if (!queued) {
      queued = true;
      queueMicrotask(update);
    }
  });
  fitBadges(view);
  return {
    update: () => fitBadges(view),
    destroy: () => {
      alive = false;
      off();
    }
  };
}

function contentOf(source: Source): string {
  return JSON.stringify([source.notes(), source.shown()]);
}
