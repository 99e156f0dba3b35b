import { readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import { readCallback } from '../../../../src/lab/kernel/snapshot.js';
import { BadRecording, type Reader } from '../../../../src/view/data/parse/fields.js';
import { parseProgress, readPart } from '../../../../src/view/data/parse/parse.js';
import { readSite } from '../../../../src/view/data/parse/site.js';
import { changed } from '../../recordings.js';

/** The parts of JSON Schema that the schema of a call site uses. */
interface Schema {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly anyOf?: readonly Schema[];
  readonly $ref?: string;
  readonly items?: Schema;
  readonly prefixItems?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly default?: unknown;
  readonly $defs?: Readonly<Record<string, Schema>>;
}

// The Python tests check that what Python writes is valid by this schema.
const FILE = '../jupyter_jaxcb/report/frontend/view.schema.json';
const ROOT = JSON.parse(readFileSync(FILE, 'utf8')) as Schema;
const READERS: readonly [kind: string, of: Schema, read: Reader<unknown>][] = [
  ['SiteView', ROOT, readSite],
  ['Part', ROOT.$defs!.Part!, readPart],
  ['CallbackView', ROOT.$defs!.CallbackView!, readCallback],
  ['ProgressView', ROOT.$defs!.ProgressView!, value => parseProgress(value)]
];
const PROPERTIES = READERS.flatMap(([kind, of, read]) =>
  [...places(of, '')].map(place => ({ ...place, kind, read, whole: sample(of) }))
);

function resolved(schema: Schema): Schema {
  const name = schema.$ref?.split('/').at(-1);
  const own = name === '#' ? ROOT : name ? ROOT.$defs![name]! : schema;
  return own.anyOf ? resolved(own.anyOf[0]!) : own;
}

/** A value that has everything that the schema allows. */
function sample(of: Schema): unknown {
  const schema = resolved(of);
  if (schema.properties) {
    const parts = Object.entries(schema.properties);
    return Object.fromEntries(parts.map(([name, one]) => [name, sample(one)]));
  }
  if (schema.prefixItems) {
    return schema.prefixItems.map(sample);
  }
  const simple: Record<string, unknown> = { string: 'text', integer: 3, number: 3, boolean: true };
  return schema.enum?.[0] ?? (schema.items ? [sample(schema.items)] : simple[schema.type!]);
}

/** What a reader returns for a value with the required keys only. */
function defaults(of: Schema, given: object): object {
  const named = Object.entries(of.properties!).filter(([, one]) => 'default' in one);
  return { ...given, ...Object.fromEntries(named.map(([name, one]) => [name, one.default])) };
}

interface Place {
  readonly path: string;
  readonly schema: Schema;
  readonly required: boolean; // may not be missing
}

function* places(of: Schema, at: string): Generator<Place> {
  const schema = resolved(of);
  const named = Object.entries(schema.properties ?? {});
  const numbered = (schema.prefixItems ?? []).map((one, place) => [String(place), one] as const);
  const item = schema.items && !schema.prefixItems ? [['0', schema.items] as const] : [];
  for (const [name, one] of [...named, ...numbered, ...item]) {
    const required = schema.required?.includes(name) ?? false;
    yield { path: `${at}${name}`, schema: one, required };
    yield* places(one, `${at}${name}.`);
  }
}

/** Values of other types than that of the schema. */
function wrong(of: Schema): unknown[] {
  const schema = resolved(of);
  const other = {
    array: ['x', {}, 3],
    object: ['x', [], 3],
    integer: ['3', NaN, -2, true],
    number: ['3', NaN, -2, true],
    boolean: ['x', 0],
    string: [3, [], {}]
  }[schema.enum ? 'string' : schema.type!]!;
  return [...other, ...(schema.enum ? ['another'] : []), ...(of.anyOf ? [] : [null])];
}

describe.each(READERS)('the reader of a %s', (kind, of, read) => {
  it('reads everything that the schema allows, and nothing else', () => {
    const whole = sample(of);
    expect(read(structuredClone(whole), 'it')).toEqual(whole);
    if (!Array.isArray(whole)) {
      expect(read({ ...(whole as object), more: 1 }, 'it')).toEqual(whole);
    }
    expect(PROPERTIES.filter(place => place.kind === kind).length).toBeGreaterThan(1);
  });
});

describe('readers', () => {
  it.each(PROPERTIES)('refuse a wrong type of $path of a $kind, and that it is missing', place => {
    const { path, read, whole } = place;
    for (const value of wrong(place.schema)) {
      expect(() => read(changed(whole, path, value), 'it')).toThrow(BadRecording);
    }
    if (place.required) {
      expect(() => read(changed(whole, path, undefined), 'it')).toThrow(BadRecording);
    }
  });

  it('give what a saved output leaves out the default of the schema', () => {
    const required = Object.entries(ROOT.properties!).filter(([name]) => ROOT.required!.includes(name));
    const least = Object.fromEntries(required.map(([name, one]) => [name, sample(one)]));
    expect(readSite(least, 'it')).toEqual(defaults(ROOT, least));
    expect(readSite({ ...least, shapes: [{}] }, 'it').shapes).toEqual([
      defaults(ROOT.$defs!.VariantView!, {})
    ]);
  });

  it('read null where the schema allows it', () => {
    for (const { path, schema, read, whole } of PROPERTIES.filter(({ schema }) => schema.anyOf)) {
      expect(schema.anyOf![1]).toEqual({ type: 'null' });
      const it = changed(whole, path, null);
      expect(read(it, 'it')).toEqual(it);
    }
  });
});
