import { readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import { BadRecording } from '../../../../src/view/data/parse/fields.js';
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
  readonly $defs?: Readonly<Record<string, Schema>>;
}

// The Python tests check that what Python writes is valid by this schema.
const FILE = '../jupyter_jaxcb/report/frontend/view.schema.json';
const ROOT = JSON.parse(readFileSync(FILE, 'utf8')) as Schema;
const SITE = sample(ROOT);
const PROPERTIES = [...places(ROOT, '')];

function resolved(schema: Schema): Schema {
  const own = schema.$ref ? ROOT.$defs![schema.$ref.split('/').at(-1)!]! : schema;
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
  const simple: Record<string, unknown> = { string: 'text', integer: 3, boolean: true };
  return schema.enum?.[0] ?? (schema.items ? [sample(schema.items)] : simple[schema.type!]);
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
    boolean: ['x', 0],
    string: [3, [], {}]
  }[schema.enum ? 'string' : schema.type!]!;
  return [...other, ...(schema.enum ? ['another'] : []), ...(of.anyOf ? [] : [null])];
}

describe('the reader of a call site', () => {
  it('reads everything that the schema allows, and nothing else', () => {
    expect(readSite(structuredClone(SITE), 'site')).toEqual(SITE);
    expect(readSite({ ...(SITE as object), more: 1 }, 'site')).toEqual(SITE);
    expect(PROPERTIES.length).toBeGreaterThan(60);
  });

  it.each(PROPERTIES)('refuses a wrong type of $path, and that it is missing', place => {
    for (const value of wrong(place.schema)) {
      expect(() => readSite(changed(SITE, place.path, value), 'site')).toThrow(BadRecording);
    }
    const without = () => readSite(changed(SITE, place.path, undefined), 'site');
    if (place.required) {
      expect(without).toThrow(BadRecording);
    }
  });

  it('reads null where the schema allows it', () => {
    for (const { path, schema } of PROPERTIES.filter(({ schema }) => schema.anyOf)) {
      expect(schema.anyOf![1]).toEqual({ type: 'null' });
      const site = changed(SITE, path, null);
      expect(readSite(site, 'site')).toEqual(site);
    }
  });
});
