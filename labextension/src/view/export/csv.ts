/** Calls as CSV, with columns of `Recording.to_pandas`. */

import type { ExportedCall, ExportedCalls } from './calls.js';

const COLUMNS = [
  'start_ns',
  'duration_ns',
  'element',
  'thread',
  'error',
  'function',
  'flavor',
  'where',
  'operands',
  'results'
] as const satisfies readonly (keyof ExportedCall)[];

const FORMULA = /^[=+\-@\t\r]/; // a spreadsheet reads such cells as formulas

/** The pieces of a CSV file with the first `rows` calls. */
export async function toCsv(calls: ExportedCalls, rows?: number): Promise<BlobPart[]> {
  const header = `${COLUMNS.join(',')}\n`;
  const line = (call: ExportedCall) => `${COLUMNS.map(name => cell(call[name])).join(',')}\n`;
  return [header, ...(await calls.formatted(line, '', rows))];
}

function cell(value: string | number): string {
  if (typeof value === 'number') {
    return String(value);
  }
  const harmless = FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}
