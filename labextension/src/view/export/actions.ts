/** The row of actions that take a recording elsewhere. They need no kernel. */

import { button, h, type Child } from '../dom/elements.js';
import { callsOf, type RawCalls } from '../data/raw.js';
import type { Facts, Measured } from '../data/schema.js';
import { callWords, failedWords, someOf } from '../data/words.js';
import { copyText, saveFile } from './browser.js';
import { toJson } from './json.js';
import { toMarkdown } from './markdown.js';

const FILE = 'host-trace.json';
const OTHERS =
  `CSV: save as JSON, then run python -m jupyter_jaxcb export ${FILE} calls.csv; ` +
  'calls.parquet, calls.arrow and calls.perfetto.json are written the same way';

/** The recording of a view. */
export interface Exported {
  readonly facts: Facts;
  readonly measured: Measured;
  readonly raw: RawCalls | null;
  readonly environment: string; // "jax 0.10.2 · cpu"
}

/** Performs an action; returns what to say about it. */
type Action = (own: Exported) => Promise<string>;

/** `Copy as Markdown  Save as JSON  CSV, Parquet, Perfetto …`, and `more`. */
export function exportActions(own: Exported, more: readonly Child[] = []): HTMLElement {
  const said = h('span', { class: 'jaxcb-actions-said', role: 'status' });
  const link = (text: string, name: string, action: Action): HTMLElement =>
    button({ class: 'jaxcb-link', 'aria-label': name }, () => perform(action, own, said), text);
  const group = (label: string, name: string, action: Action): HTMLElement =>
    h(
      'span',
      { class: 'jaxcb-actions-group' },
      h('span', {}, label),
      ' ',
      link(name, `${label} ${name}`, action)
    );
  const hasCalls = Boolean((own.raw ?? own.measured.calls)?.rows);
  return h(
    'div',
    { class: 'jaxcb-actions', role: 'group', 'aria-label': 'copy, save' },
    group('Copy as', 'Markdown', copyMarkdown),
    hasCalls && group('Save as', 'JSON', saveJson),
    hasCalls &&
      link('CSV, Parquet, Perfetto…', 'how to get CSV, Parquet, Perfetto', async () => OTHERS),
    ...more,
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
    said.textContent = failedWords(error instanceof Error ? error.message : String(error));
  }
}

async function copyMarkdown({ facts, measured, environment }: Exported): Promise<string> {
  await copyText(toMarkdown(facts, measured, environment));
  return 'copied the call sites';
}

async function saveJson(own: Exported): Promise<string> {
  const { facts, measured } = own;
  const raw = await callsOf(measured.calls, own.raw);
  saveFile(FILE, await toJson(facts, measured, raw), 'application/json');
  const without = raw?.crossingsProblem ? `, without crossings: ${raw.crossingsProblem}` : '';
  return `saved ${countWords(own)} as ${FILE}${without}`;
}

/** `61 calls`, or `the first 20,000 of 100,000 calls`. */
function countWords({ measured, raw }: Exported): string {
  const held = (raw ?? measured.calls)?.rows ?? 0;
  const all = raw ? held : held + measured.calls_not_saved;
  return held < all ? `the first ${someOf(held, all)}` : callWords(all);
}
