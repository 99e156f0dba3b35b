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

// As in Python (`recording/_shown.py`, `report/text/_markdown.py`): what a terminal obeys and what
// nobody sees; and what is markup on a line, or at its beginning, or makes an address a link.
const HIDDEN =
  /[\p{Cc}\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e00ff}\p{Cs}]|(?<![^\0-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\0-\x7f])/gu;
const MARKUP = /[\\`*_[\]<>#&~$@]|:(?=\/\/)|(?<=www)\.|^[-+](?= )|(?<=^\d)[.)](?= )/gi;

/** Text on one line, with escapes for characters that nobody sees. */
function visible(text: string, longest: number): string {
  const line = cut(text, longest).replace(/[\t\n\r ]+/g, ' ').trim();
  return line.replace(HIDDEN, sign => {
    const code = sign.codePointAt(0)!.toString(16);
    const [letter, digits] = code.length < 3 ? ['x', 2] : code.length < 5 ? ['u', 4] : ['U', 8];
    return `\\${letter}${code.padStart(Number(digits), '0')}`;
  });
}

/** Text on one line, in which nothing is markup, a link, a formula or a mention. */
function escaped(text: string): string {
  return visible(text, 4 * LONGEST).replace(MARKUP, '\\$&');
}

/** Markdown for a cell of a table, which a bar would end, even in code, as would `\\|`. */
function inCell(text: string): string {
  return text.replace(/(\\*)\|/g, (_, slashes: string) => `${slashes}${' '.repeat(slashes.length % 2)}\\|`);
}

/** Text on one line, as a code span. */
function code(text: string): string {
  const line = visible(text, LONGEST);
  if (!line) {
    return '';
  }
  const longest = Math.max(0, ...[...line.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = '`'.repeat(longest + 1);
  return longest ? `${fence} ${line} ${fence}` : `${fence}${line}${fence}`;
}
