/** Finds the line of a call site in a notebook that was perhaps edited after the run. */

import { cut, MOST } from '../../view/data/parse/conform.js';
import type { Target } from '../../view/sites/row.js';

/** A cell as it is now. */
export interface CellText {
  readonly id: string;
  readonly text: string;
  /** The current number of a line of the executed source, if edits were followed since the run. */
  tracked(line: number, source: string): number | null;
}

interface Found {
  readonly cell: number; // index
  readonly line: number; // 1-based
  readonly doubt: string; // what the user should know about this line; usually empty
}

/**
 * The line of `target`, or the nearest line if it is gone; null if its cell is gone too.
 *
 * Copies of a cell contain the output of the original, and the ids in it. So the text decides: first
 * in the cell of the output, `own` (-1: none), then in the cell that ran, then in the cells around.
 */
export function findLine(cells: readonly CellText[], own: number, target: Target): Found | null {
  const ran = cells.findIndex(({ id }) => id === target.cell);
  const homes = (target.elsewhere ? [ran] : [own, ran]).filter(cell => cell >= 0);
  const start = homes[0] ?? own;
  return (
    first(homes, cell => inHome(cells, cell, target)) ??
    first(byDistance(cells.length, start), cell => inOther(cells, cell, target)) ??
    (homes.length > 0 ? changed(cells[start]!, start, target) : null)
  );
}

function inHome(cells: readonly CellText[], cell: number, { line, source }: Target): Found | null {
  const { text, tracked } = cells[cell]!;
  const lines = text.split('\n');
  const now = tracked(line, source);
  if (now !== null) {
    const same = source === '' || isSame(lines[now - 1], source);
    return { cell, line: now, doubt: same ? '' : `Line ${line} was edited after this run.` };
  }
  if (source === '') {
    return line <= lines.length ? { cell, line, doubt: '' } : null;
  }
  const nearest = nearestLine(lines, line, source);
  return nearest === null ? null : { cell, line: nearest, doubt: '' };
}

function inOther(cells: readonly CellText[], cell: number, { line, source }: Target): Found | null {
  const found = source === '' ? null : nearestLine(cells[cell]!.text.split('\n'), line, source);
  const doubt = `Line ${line} is no longer in its cell. This cell contains the same line.`;
  return found === null ? null : { cell, line: found, doubt };
}

function changed({ text }: CellText, cell: number, { line, source }: Target): Found {
  const was = source === '' ? '' : ` It was: ${cut(source, 80)}`;
  const doubt = `Line ${line} was changed or deleted after this run.${was}`;
  return { cell, line: Math.min(line, text.split('\n').length), doubt };
}

function nearestLine(lines: readonly string[], line: number, source: string): number | null {
  let nearest: number | null = null;
  lines.forEach((text, place) => {
    const closer = nearest === null || Math.abs(place + 1 - line) < Math.abs(nearest - line);
    if (closer && isSame(text, source)) {
      nearest = place + 1;
    }
  });
  return nearest;
}

// A recording's view cuts long lines.
function isSame(text: string | undefined, source: string): boolean {
  return text !== undefined && cut(text.trim(), MOST) === cut(source, MOST);
}

/** All other cells from `start` outwards: splitting a cell inserts its upper part above. */
function byDistance(count: number, start: number): number[] {
  const others = Array.from({ length: count }, (_, cell) => cell).filter(cell => cell !== start);
  return others.sort((one, other) => Math.abs(one - start) - Math.abs(other - start));
}

function first<T>(items: readonly number[], find: (item: number) => T | null): T | null {
  for (const item of items) {
    const found = find(item);
    if (found !== null) {
      return found;
    }
  }
  return null;
}
