import { describe, expect, it } from 'vitest';

import { vmapMethodEdit } from '../../../src/lab/lines/write-option.js';

function written(source: string, line: number): string | null {
  const edit = vmapMethodEdit(source, line, 'f', 'expand_dims');
  return edit && source.slice(0, edit.from) + edit.text + source.slice(edit.to);
}

const BODY = '\ndef f(x):\n    return x';

describe('vmapMethodEdit', () => {
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

  it.each([
    ['a method', `@pure(vmap_method="sequential")${BODY}`, 1],
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
