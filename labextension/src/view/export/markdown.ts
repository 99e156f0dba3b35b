/** The call sites of a recording as Markdown, for an issue or a chat. */

import { summaryLine } from '../sites/summary.js';
import { errorWords, proposed, siteCalls, timesKnown } from '../sites/words.js';
import { cut } from '../data/parse/fields.js';
import type { Facts, Measured, Site } from '../data/schema.js';
import { failedWords, levelWords, placeOf, siteStatus, timeWords, variantShapes } from '../data/words.js';

const MOST_SITES = 100;
const LONGEST = 200; // characters of a cell
const HEAD = ['where', 'source', 'status', 'calls', 'shapes of one call', 'host time'];

/** The summary line, a table of call sites, and what there is to say about each. */
export function toMarkdown(facts: Facts, measured: Measured, environment: string): string {
  const times = timesKnown(facts);
  const sites = facts.sites.slice(0, MOST_SITES);
  const rows = sites.map(site => cells(site, facts.ahead));
  const columns = times ? HEAD.length : HEAD.length - 1;
  const table = [HEAD, HEAD.map(() => '---'), ...rows].map(
    row => `| ${row.slice(0, columns).map(inCell).join(' | ')} |`
  );
  const more = facts.sites.length - sites.length;
  const notes = [...sites.flatMap(notesOf), ...(more ? [`* and ${more} more call sites`] : [])];
  const parts = [
    escaped(summaryLine(facts, measured).textContent ?? ''),
    sites.length ? table.join('\n') : '',
    notes.join('\n'),
    escaped(environment)
  ];
  return `${parts.filter(Boolean).join('\n\n')}\n`;
}

function cells(site: Site, ahead: boolean): string[] {
  const shapes = site.shapes.map(
    one => code(variantShapes(one)) + (one.levels.length ? ` ${escaped(levelWords(one))}` : '')
  );
  return [
    escaped(placeOf(site)),
    code(site.source),
    siteStatus(site),
    siteCalls(site, ahead),
    shapes.length > 3 ? `${shapes.length} shapes` : shapes.join('<br>'),
    site.calls ? timeWords(site.host_ns ?? 0) : ''
  ];
}

function notesOf(site: Site): string[] {
  const reason = [site.reason, site.advice].filter(Boolean).join('; ');
  const notes = [reason, ...site.notes, ...proposed(site)].filter(Boolean).map(escaped);
  const errors = site.errors.map(error => failedWords(code(errorWords(error, LONGEST))));
  return [...notes, ...errors].map(note => `* ${escaped(placeOf(site))}: ${note}`);
}

/** Text on one line, in which nothing is markup. */
function escaped(text: string): string {
  return cut(text, 4 * LONGEST).replace(/\s+/g, ' ').replace(/[\\`*_[\]<>#]/g, '\\$&');
}

/** Markdown for a cell of a table, which a bar would end, even in code. */
function inCell(text: string): string {
  return text.replaceAll('|', '\\|');
}

/** Text on one line, as a code span. */
function code(text: string): string {
  const line = cut(text, LONGEST).replace(/\s+/g, ' ').trim();
  if (!line) {
    return '';
  }
  const longest = Math.max(0, ...[...line.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = '`'.repeat(longest + 1);
  return longest ? `${fence} ${line} ${fence}` : `${fence}${line}${fence}`;
}
