/** The calls of a recording, for files. */

import { appendRaw, type RawCalls } from '../data/raw.js';
import type { Aval, Facts, Measured, Site } from '../data/schema.js';
import { labelsOf } from '../data/labels.js';
import { Store } from '../data/store.js';
import { elementOf, errorOf, threadName } from '../data/call.js';
import { unpack } from '../data/unpack.js';

/** What a file says about one host call; times in nanoseconds since the first call. */
export interface ExportedCall {
  readonly start_ns: number;
  readonly duration_ns: number;
  readonly element: string; // empty: none
  readonly thread: string;
  readonly error: string; // empty: it returned
  readonly function: string;
  readonly flavor: string;
  readonly where: string;
  readonly operands: string; // "float32[3] int32[]", as one host call sees them
  readonly results: string;
}

const PIECE = 5_000; // calls formatted at a time: tens of milliseconds

export class ExportedCalls {
  private constructor(
    private readonly store: Store,
    private readonly sites: readonly Site[]
  ) {}

  /** Unpacks the calls. Throws Error with a one-sentence message if they are malformed. */
  static async of(
    facts: Facts,
    measured: Measured,
    raw: RawCalls | null
  ): Promise<ExportedCalls> {
    const store = new Store(labelsOf(facts, measured));
    const found = raw ?? (measured.calls && (await unpack(measured.calls)));
    if (found) {
      appendRaw(store, found);
    }
    return new ExportedCalls(store, facts.sites);
  }

  get length(): number {
    return this.store.calls.length;
  }

  /**
   * Formats the first `rows` calls, in pieces between which the page can react.
   *
   * Returns: the formatted calls of each piece, joined by `separator`. Each is a Blob already,
   * because encoding all of them at once would take seconds.
   */
  async formatted(
    format: (call: ExportedCall) => string,
    separator = '',
    rows = this.length
  ): Promise<Blob[]> {
    const pieces: Blob[] = [];
    for (let begin = 0; begin < rows; begin += PIECE) {
      const calls: string[] = [];
      for (let row = begin; row < Math.min(begin + PIECE, rows); row++) {
        calls.push(format(this.call(row)));
      }
      pieces.push(new Blob([begin ? separator : '', calls.join(separator)]));
      await new Promise(resolve => setTimeout(resolve));
    }
    return pieces;
  }

  private call(row: number): ExportedCall {
    const { store } = this;
    const { calls, labels } = store;
    const place = store.site(row);
    const site = place === null ? undefined : this.sites[place];
    const variant = labels.variants[calls.variant(row)];
    return {
      start_ns: calls.start(row),
      duration_ns: calls.duration(row),
      element: elementOf(store, row),
      thread: threadName(store, calls.thread(row)),
      error: errorOf(store, row),
      function: site?.function ?? '',
      flavor: site?.flavor ?? '',
      where: site?.where ?? '',
      operands: avalWords(variant?.operands ?? []),
      results: avalWords(variant?.results ?? [])
    };
  }
}

function avalWords(avals: readonly Aval[]): string {
  return avals.map(([shape, dtype]) => `${dtype}[${shape.join(',')}]`).join(' ');
}
