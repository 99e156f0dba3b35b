import { describe, expect, it, test } from 'vitest';

import { magicEdit, optionEdit } from '../../../src/lab/lines/write-option.js';
import type { Proposal } from '../../../src/view/data/schema.js';

const BATCH: Proposal = ['vmap_method="expand_dims"', '', ['ordered']];
const QUEUED: Proposal = ['queued=True', '', []];

function written(source: string, line: number, proposal = BATCH): string | null {
  const edit = optionEdit(source, line, 'f', proposal);
  return edit && source.slice(0, edit.from) + edit.text + source.slice(edit.to);
}

const BODY = '\ndef f(x):\n    return x';

describe('optionEdit', () => {
  it.each([
    ['@jaxcb.pure(result="x")', '@jaxcb.pure(result="x", vmap_method="expand_dims")'],
    ['@jaxcb.pure(result="x",)  ', '@jaxcb.pure(result="x", vmap_method="expand_dims")  '],
    ['@debug', '@debug(vmap_method="expand_dims")'],
    ['@jupyter_jaxcb.io()', '@jupyter_jaxcb.io(vmap_method="expand_dims")'],
    ['@other(1)\n@pure(result="x")', '@other(1)\n@pure(result="x", vmap_method="expand_dims")']
  ])('writes into the decorator %s', (before, after) => {
    expect(written(`y = 1\n${before}${BODY}`, 2)).toBe(`y = 1\n${after}${BODY}`);
  });

  it('writes into the magic of a cell with one function', () => {
    const cell = '\n%%jax_callback pure --result x';
    expect(written(`${cell}${BODY}`, 3)).toBe(`${cell} --vmap-method expand_dims${BODY}`);
    expect(written(`${cell}${BODY}\ndef g(x): pass`, 3)).toBeNull();
    expect(written(`${cell} --vmap-method sequential${BODY}`, 3)).toBeNull();
  });

  it('writes an option without a value as a flag of the magic, and not beside itself', () => {
    expect(written(`@debug(ordered=True)${BODY}`, 1, QUEUED)).toBe(`@debug(ordered=True, queued=True)${BODY}`);
    expect(written(`%%jax_callback debug${BODY}`, 2, QUEUED)).toBe(`%%jax_callback debug --queued${BODY}`);
    expect(written(`@debug(queued=True)${BODY}`, 1, QUEUED)).toBeNull();
  });

  it.each([
    ['an order, which goes without a method', `@io(result=None, ordered=True)${BODY}`, 1],
    ['a method', `@pure(vmap_method="sequential")${BODY}`, 1],
    ['options from elsewhere, which may have a method', `@pure(**OPTIONS)${BODY}`, 1],
    ['a call of what the decorator returns', `@pure(result="x")(g)${BODY}`, 1],
    ['a comment', `@pure(result="x")  # (why)${BODY}`, 1],
    ['a decorator of several lines', `@pure(\n  result="x")${BODY}`, 1],
    ['no decorator', `g = pure(f)${BODY}`, 2],
    ['another function', `@pure(result="x")\ndef g(x): pass`, 1],
    ['a line after the end', `@pure(result="x")${BODY}`, 9],
    ['no known line', `@pure(result="x")${BODY}`, 0]
  ])('leaves %s alone', (_, source, line) => {
    expect(written(source, line)).toBeNull();
  });
});

test.each([
  ['f(1.0)', '', 'f(1.0)'],
  ['%%jax_record\nf(1.0)', '', 'f(1.0)'],
  ['\n%%jax_record run --jax --values \nf(1.0)', ' run --values', 'f(1.0)'],
  ['%%time\nf(1.0)', '', '%%time\nf(1.0)']
])('%j runs below a magic with the options %j', (source, options, code) => {
  for (const magic of ['%%jax_profile', '%%jax_record --jax'] as const) {
    const { from, to, text } = magicEdit(source, magic)!;
    expect(source.slice(0, from) + text + source.slice(to)).toBe(`${magic}${options}\n${code}`);
  }
});

test.each([
  ['x = 1\ny = await fetched(x)', false],
  ['await fetched(x)', false],
  ['async with lock:\n    f(1.0)', false],
  ['async def g():\n    return await fetched(1)', true],
  ['# await it\nf(1.0)', true]
])('%j can run below a magic: %s', (source, can) => {
  expect(magicEdit(source, '%%jax_profile') !== null).toBe(can);
});
