/** Reads untrusted data: checks every value and limits every length. */

/** A recording cannot be shown; the message says why, in one sentence. */
export class BadRecording extends Error {}

/** What `read` returns; null if the data is malformed. */
export function readable<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    if (error instanceof BadRecording) {
      return null;
    }
    throw error;
  }
}

/** Reads a value; `path` names it in messages. */
export type Reader<T> = (value: unknown, path: string) => T;

/** What a reader returns: the types of the data are those of their readers. */
export type Read<R> = R extends Reader<infer T> ? T : never;

const LONGEST_NS = 1e18; // thirty years
const SHOWN = 40; // characters of a wrong value that a message repeats

/** A string, cut with `…` after `longest` characters. */
export function text(longest: number): Reader<string> {
  return (value, path) => {
    if (typeof value !== 'string') {
      throw bad(path, value, 'text');
    }
    return cut(value, longest);
  };
}

/** `some lo…`: never more than `longest` characters. */
export function cut(value: string, longest: number): string {
  if (value.length <= longest) {
    return value;
  }
  // Half of a surrogate pair is not a character.
  return `${value.slice(0, longest - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}

/** One of some words. */
export function oneOf<T extends string>(words: readonly T[]): Reader<T> {
  return (value, path) => {
    const known = words.find(word => word === value);
    if (known === undefined) {
      throw bad(path, value, `one of ${words.join(', ')}`);
    }
    return known;
  };
}

/** A whole number from `least` to `most`. */
export function whole(least = 0, most = Number.MAX_SAFE_INTEGER): Reader<number> {
  return (value, path) => {
    if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < least) {
      throw bad(path, value, `a whole number of at least ${least}`);
    }
    if (value > most) {
      throw bad(path, value, `at most ${most}`);
    }
    return value;
  };
}

export function amount(value: unknown, path: string): number {
  if (typeof value !== 'number' || !Number.isFinite(value) || value < 0) {
    throw bad(path, value, 'a finite number of at least 0');
  }
  return value;
}

/** A time that may be negative. */
export function time(value: unknown, path: string): number {
  if (typeof value !== 'number' || !(Math.abs(value) <= LONGEST_NS)) {
    throw bad(path, value, 'a time');
  }
  return value;
}

export function flag(value: unknown, path: string): boolean {
  if (typeof value !== 'boolean') {
    throw bad(path, value, 'true or false');
  }
  return value;
}

export function orNull<T>(read: Reader<T>): Reader<T | null> {
  return (value, path) => (value === null ? null : read(value, path));
}

/** As `read`; `otherwise` if there is no such key. */
export function or<T>(read: Reader<T>, otherwise: NoInfer<T>): Reader<T> {
  return (value, path) => (value === undefined ? otherwise : read(value, path));
}

/** As `read`; undefined if there is no such key. */
export function optional<T>(read: Reader<T>): Reader<T | undefined> {
  return (value, path) => (value === undefined ? undefined : read(value, path));
}

/** An object with a reader for each of its keys; other keys and inherited ones are ignored. */
export function objectOf<T extends Readonly<Record<string, Reader<unknown>>>>(
  keys: T
): Reader<{ readonly [K in keyof T]: Read<T[K]> }> {
  const readers = Object.entries(keys);
  return (value, path) => {
    const data = record(value, path);
    const parts: Record<string, unknown> = {};
    for (const [name, read] of readers) {
      parts[name] = read(Object.hasOwn(data, name) ? data[name] : undefined, below(path, name));
    }
    return parts as { readonly [K in keyof T]: Read<T[K]> };
  };
}

/** An object with any keys; only its first `most` entries are read. */
export function mapOf<T>(read: Reader<T>, most: number): Reader<ReadonlyMap<string, T>> {
  return (value, path) => {
    const entries = Object.entries(record(value, path)).slice(0, most);
    return new Map(entries.map(([name, one]) => [name, read(one, below(path, name))]));
  };
}

/** An object. */
function record(value: unknown, path: string): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw bad(path, value, 'an object');
  }
  return value as Readonly<Record<string, unknown>>;
}

function below(path: string, name: string): string {
  return path ? `${path}.${name}` : name;
}

/** A list with a reader for each of its entries. */
export function tupleOf<T extends readonly Reader<unknown>[]>(
  ...readers: T
): Reader<{ readonly [I in keyof T]: Read<T[I]> }> {
  return (value, path) => {
    const items = list(value, path);
    if (items.length !== readers.length) {
      throw new BadRecording(`${path} has ${items.length} entries, not ${readers.length}.`);
    }
    const parts = readers.map((read, place) => read(items[place], `${path}[${place}]`));
    return parts as { readonly [I in keyof T]: Read<T[I]> };
  };
}

/** A list; only its first `most` entries are read. */
export function listOf<T>(read: Reader<T>, most: number): Reader<readonly T[]> {
  return (value, path) => {
    const items = list(value, path).slice(0, most);
    return items.map((item, place) => read(item, `${path}[${place}]`));
  };
}

/** What is not checked here. */
export function anything(value: unknown): unknown {
  return value;
}

/** A list of anything. */
export function list(value: unknown, path: string): readonly unknown[] {
  if (!Array.isArray(value)) {
    throw bad(path, value, 'a list');
  }
  return value;
}

export function bad(path: string, value: unknown, wanted: string): BadRecording {
  const subject = path || 'the recording';
  return new BadRecording(
    value === undefined
      ? `${subject} is missing.`
      : `${subject} is ${foundWords(value)}, not ${wanted}.`
  );
}

function foundWords(value: unknown): string {
  if (typeof value === 'string') {
    return JSON.stringify(cut(value, SHOWN));
  }
  if (value === null || typeof value === 'number' || typeof value === 'boolean') {
    return String(value);
  }
  return Array.isArray(value) ? 'a list' : `a ${typeof value}`.replace('a object', 'an object');
}

/** Throws `BadRecording` if `data` holds more than `most` values, which take too long to read. */
export function checkSize(data: readonly unknown[], most: number, path: string): void {
  const found: unknown[] = [data];
  for (let place = 0; place < found.length; place++) {
    const value = found[place];
    for (const inner of typeof value === 'object' && value !== null ? Object.values(value) : []) {
      if (found.push(inner) > most) {
        const words = most.toLocaleString('en-US');
        throw new BadRecording(`${path} holds more than ${words} values, too many to show.`);
      }
    }
  }
}
