/** Writes options of callbacks and magics into cells, where that is certainly right. */

import type { Proposal } from '../../view/data/schema.js';
import type { Magic } from '../../view/view.js';

/** Characters `from` to `to` of a cell, and what replaces them. */
interface Edit {
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

const DECORATOR = /^\s*@(?:\w+\.)*(?:pure|io|debug)(?:\((.*)\))?\s*$/;
const MAGIC = /^%%jax_callback\b.*$/;

/**
 * The edit that gives the callback `name` an option; null: its line was not found, is longer than
 * one line, or has a comment, the option, options that do not go with it, `**options`, or two calls.
 *
 * Args:
 *   source: of the cell.
 *   line: where the function begins, with its decorators, 1-based.
 */
export function optionEdit(
  source: string,
  line: number,
  name: string,
  [option, , excludes]: Proposal
): Edit | null {
  const [own, value] = option.split('=') as [string, string];
  const taken = (text: string): boolean =>
    ['#', '**', ')(', own, ...excludes].some(one => text.replaceAll('-', '_').includes(one));
  const lines = source.split('\n');
  const magic = lines.findIndex(one => one.trim() !== '');
  if (MAGIC.test(lines[magic] ?? '')) {
    const functions = lines.filter(one => /^(async )?def /.test(one));
    const only = functions.length === 1 && functions[0]!.startsWith(`def ${name}(`);
    const given = value === 'True' ? '' : ` ${value.replaceAll('"', '')}`;
    const flag = ` --${own.replaceAll('_', '-')}${given}`;
    return only && !taken(lines[magic]!) ? append(lines, magic, 0, flag) : null;
  }
  const body = lines.findIndex((one, place) => place >= line - 1 && !/^\s*@/.test(one));
  if (line < 1 || !lines[body]?.trimStart().startsWith(`def ${name}(`)) {
    return null;
  }
  for (let place = line - 1; place < body; place++) {
    const found = DECORATOR.exec(lines[place]!);
    if (found && !taken(found[0])) {
      const given = found[1];
      const trailing = lines[place]!.length - lines[place]!.trimEnd().length;
      if (given === undefined) {
        return append(lines, place, trailing, `(${option})`);
      }
      const comma = given.trim() === '' ? '' : given.trimEnd().endsWith(',') ? ' ' : ', ';
      return append(lines, place, trailing + 1, `${comma}${option}`);
    }
  }
  return null;
}

/** Of a line that runs in an event loop, which IPython has for no cell below a magic. */
const AWAITS = /^(?:[^\s#].*)?\bawait\b|^async (?:for|with)\b/m;

/**
 * The edit after which a cell runs below a magic, in place of one that records it;
 * null: the cell awaits, and would not run.
 */
export function magicEdit(source: string, magic: Magic): Edit | null {
  if (AWAITS.test(source)) {
    return null;
  }
  const [recorded = '', options = ''] = /^\s*%%jax_record\b(.*)\n?/.exec(source) ?? [];
  const text = `${magic}${options.replace(/ --jax\b/, '').trimEnd()}\n`; // which profiles have anyway
  return { from: 0, to: recorded.length, text };
}

/** Inserts `text` before the last `before` characters of a line. */
function append(lines: readonly string[], place: number, before: number, text: string): Edit {
  const end = lines.slice(0, place + 1).join('\n').length - before;
  return { from: end, to: end, text };
}
