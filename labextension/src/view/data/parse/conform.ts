/**
 * Reads untrusted JSON along its schema, with bounded work.
 *
 * Missing keys get their defaults, unknown ones are left out, and texts and lists are cut. A value
 * of the wrong type is replaced by a harmless one, a text by `?`.
 */

import documents from './documents.json';
import type { Documents } from './types.js';

/** The parts of JSON Schema that `docs/view_schema.py` writes, and a few more keys. */
interface Schema {
  readonly $ref?: string;
  readonly type?: string; // absent: anything
  readonly enum?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema;
  readonly items?: Schema;
  readonly prefixItems?: readonly Schema[];
  readonly minimum?: number; // absent: 0
  readonly most?: number; // characters or entries; absent: 1,000
  readonly nullable?: boolean;
  readonly optional?: boolean; // may be missing, and has no default
  readonly default?: unknown;
}

export const MOST = 1_000; // characters of a text, entries of a list; unless the schema has others
const MOST_VALUES = 600_000; // entries of all lists of a document
const MOST_NUMBER = 1e18; // in nanoseconds, thirty years: sums stay finite
const SHOWN = 40; // characters of a wrong value
const DEFINITIONS = documents as unknown as Readonly<Record<string, Schema>>;
const HARMLESS = new Map<unknown, unknown>([['boolean', false], ['array', []], ['object', {}]]);

/** The document, and what is wrong with it first, in one sentence; empty: nothing is. */
export function conform<K extends keyof Documents>(
  kind: K,
  data: unknown,
  name = ''
): readonly [Documents[K], damage: string] {
  const path: (string | number)[] = name ? [name] : [];
  let left = MOST_VALUES;
  let damage = '';

  function read(schema: Schema, value: unknown): unknown {
    if (value === undefined && 'default' in schema) {
      return schema.default;
    }
    if (value === null ? schema.nullable : value === undefined && schema.optional) {
      return value;
    }
    const definition = schema.$ref ? DEFINITIONS[schema.$ref]! : schema;
    if (!fits(definition, value)) {
      damage ||= mismatch(words(path), value, wanted(definition));
      return harmless(schema, definition);
    }
    const { properties, additionalProperties, prefixItems, items, most = MOST } = definition;
    if (prefixItems) {
      return prefixItems.map((each, place) => below(place, each, (value as unknown[])[place]));
    }
    if (items) {
      const shown = (value as unknown[]).slice(0, Math.min(most, left));
      left -= shown.length;
      damage ||= left ? '' : `${words(path)} has more values than can be shown.`;
      return shown.map((each, place) => below(place, items, each));
    }
    if (properties) {
      return object(properties, value as object);
    }
    if (additionalProperties) {
      const entries = Object.entries(value as object).slice(0, MOST);
      const parts = entries.map(([key, each]) => [cut(key, MOST), below(key, additionalProperties, each)]);
      return Object.setPrototypeOf(Object.fromEntries(parts), null); // any text may be a key
    }
    return typeof value === 'string' ? cut(value, most) : value;
  }

  function below(key: string | number, schema: Schema, value: unknown): unknown {
    path.push(key);
    const part = read(schema, value);
    path.pop();
    return part;
  }

  function object(properties: NonNullable<Schema['properties']>, value: object): object {
    const parts: Record<string, unknown> = {};
    for (const key in properties) {
      const own = Object.hasOwn(value, key) ? (value as Record<string, unknown>)[key] : undefined;
      parts[key] = below(key, properties[key]!, own);
    }
    return parts;
  }

  function harmless(schema: Schema, { type, enum: known, properties, prefixItems }: Schema): unknown {
    if (schema.nullable || schema.optional) {
      return schema.nullable ? null : undefined;
    }
    if (properties || type === 'string') {
      return properties ? object(properties, {}) : '?';
    }
    const parts = prefixItems?.map(each => read(each, undefined));
    return parts ?? schema.default ?? known?.at(-1) ?? HARMLESS.get(type) ?? 0;
  }

  return [read({ $ref: kind }, data) as Documents[K], damage];
}

function fits({ type, enum: known, minimum = 0, prefixItems }: Schema, value: unknown): boolean {
  switch (known ? 'enum' : type) {
    case 'enum':
      return known!.includes(value as string);
    case 'array':
      return Array.isArray(value) && (!prefixItems || prefixItems.length === value.length);
    case 'object':
      return isObject(value);
    case 'integer':
      return Number.isSafeInteger(value) && (value as number) >= minimum;
    case 'number':
      return typeof value === 'number' && value >= minimum && value <= MOST_NUMBER;
    default:
      return type === undefined || typeof value === type;
  }
}

function wanted({ type, enum: known, minimum = 0, prefixItems }: Schema): string {
  const number = minimum >= -1 ? ` of at least ${minimum}` : '';
  const names: Readonly<Record<string, string>> = {
    array: prefixItems ? `a list of ${prefixItems.length}` : 'a list',
    object: 'an object',
    integer: `a whole number${number}`,
    number: `a number${number}`,
    boolean: 'true or false',
    string: 'text'
  };
  return known ? `one of ${known.join(', ')}` : names[type!]!;
}

/** `sites[2].calls` */
function words(path: readonly (string | number)[]): string {
  const names = path.map(key => (typeof key === 'number' ? `[${key}]` : `.${cut(key, SHOWN)}`));
  return names.join('').replace(/^\./, '');
}

/** `sites[2].calls is "x", not a whole number of at least 0.` */
export function mismatch(path: string, value: unknown, expected: string): string {
  const simple = value === null || ['number', 'boolean'].includes(typeof value);
  const kind = Array.isArray(value) ? 'a list' : simple ? String(value) : 'an object';
  const is = typeof value === 'string' ? JSON.stringify(cut(value, SHOWN)) : kind;
  return `${path || 'the data'} is ${value === undefined ? 'missing' : `${is}, not ${expected}`}.`;
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** `some lo…`: never more than `longest` characters. */
export function cut(value: string, longest: number): string {
  // Half of a surrogate pair is not a character.
  const whole = value.length <= longest;
  return whole ? value : `${value.slice(0, longest - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}
