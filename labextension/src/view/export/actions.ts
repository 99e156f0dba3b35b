/** The row of actions that take a recording elsewhere. They need no kernel. */

import { h } from '../dom/elements.js';
import type { RawCalls } from '../data/raw.js';
import type { Facts, Measured } from '../data/schema.js';
import { callWords, someOf } from '../data/words.js';
import { copyText, saveFile } from './browser.js';
import { ExportedCalls } from './calls.js';
import { toCsv } from './csv.js';
import { toJson } from './json.js';
import { toMarkdown } from './markdown.js';
import { openInPerfetto, toPerfetto } from './perfetto.js';

const MOST_COPIED = 50_000; // calls; more than a clipboard should hold
const NAME = 'host-trace';

/** The recording of a view. */
export interface Exported {
  readonly facts: Facts;
  readonly measured: Measured;
  readonly raw: RawCalls | null;
  readonly environment: string; // "jax 0.10.2 · cpu"
}

/** Performs an action; returns what to say about it. */
type Action = (own: Exported) => Promise<string>;

const COPY: Record<string, Action> = { Markdown: copyMarkdown, CSV: copyCsv };
const SAVE: Record<string, Action> = {
  CSV: async own => save(own, 'csv', 'text/csv', await toCsv(await callsOf(own))),
  JSON: async own =>
    save(own, 'json', 'application/json', await toJson(own.facts, own.measured, await callsOf(own))),
  'Perfetto trace': async own =>
    save(own, 'perfetto.json', 'application/json', await traceOf(own))
};

/** `Copy as Markdown CSV  Save as CSV JSON Perfetto trace  Open in Perfetto`, and `more`. */
export function exportActions(own: Exported, more: HTMLElement | null = null): HTMLElement {
  const said = h('span', { class: 'jaxcb-actions-said', role: 'status' });
  const button = (text: string, name: string, action: Action): HTMLElement => {
    const node = h('button', { class: 'jaxcb-link', type: 'button', 'aria-label': name }, text);
    node.addEventListener('click', () => void perform(action, own, said));
    return node;
  };
  const group = (label: string, actions: Record<string, Action>): HTMLElement =>
    h(
      'span',
      { class: 'jaxcb-actions-group' },
      h('span', {}, label),
      ...Object.entries(actions).flatMap(([name, action]) => [
        ' ',
        button(name, `${label} ${name}`, action)
      ])
    );
  const { Markdown } = COPY as { Markdown: Action };
  const hasCalls = Boolean((own.raw ?? own.measured.calls)?.rows);
  return h(
    'div',
    { class: 'jaxcb-actions', role: 'group', 'aria-label': 'copy, save' },
    group('Copy as', hasCalls ? COPY : { Markdown }),
    hasCalls && group('Save as', SAVE),
    hasCalls && button('Open in Perfetto', 'Open in Perfetto', openTrace),
    more,
    said
  );
}

async function perform(action: Action, own: Exported, said: HTMLElement): Promise<void> {
  said.classList.remove('jaxcb-bad');
  said.textContent = '';
  try {
    said.textContent = await action(own);
  } catch (error) {
    said.classList.add('jaxcb-bad');
    said.textContent = `✕ ${error instanceof Error ? error.message : String(error)}`;
  }
}

function callsOf({ facts, measured, raw }: Exported): Promise<ExportedCalls> {
  return ExportedCalls.of(facts, measured, raw);
}

async function traceOf(own: Exported): Promise<BlobPart[]> {
  return toPerfetto(own.measured, await callsOf(own));
}

async function copyMarkdown({ facts, measured, environment }: Exported): Promise<string> {
  await copyText(toMarkdown(facts, measured, environment));
  return 'copied the call sites';
}

async function copyCsv(own: Exported): Promise<string> {
  const calls = await callsOf(own);
  const rows = Math.min(calls.length, MOST_COPIED);
  await copyText(await new Blob(await toCsv(calls, rows)).text());
  return `copied ${countWords(own, rows)}`;
}

function save(own: Exported, suffix: string, type: string, pieces: BlobPart[]): string {
  saveFile(`${NAME}.${suffix}`, pieces, type);
  return `saved ${countWords(own)} as ${NAME}.${suffix}`;
}

async function openTrace(own: Exported): Promise<string> {
  const trace = async () => new Blob(await traceOf(own)).arrayBuffer();
  await openInPerfetto(trace, 'host trace');
  return `opened ${countWords(own)}`;
}

/** `61 calls`, or `the first 20,000 of 100,000 calls`. */
function countWords({ measured, raw }: Exported, most = Infinity): string {
  const held = (raw ?? measured.calls)?.rows ?? 0;
  const all = raw ? held : held + measured.calls_not_saved;
  const some = Math.min(held, most);
  return some < all ? `the first ${someOf(some, all)}` : callWords(all);
}
