import { describe, expect, it } from 'vitest';

import { batchedOf, elementWords } from '../../../src/view/sites/batching-axes.js';
import { batchingDiagram } from '../../../src/view/sites/batching.js';
import type { Level } from '../../../src/view/data/schema.js';
import { aVariant } from '../recordings.js';

/** For each row the kinds of axes, outermost first, and the unbatched shape: `batched 4 | 5`. */
function rows(...variant: Parameters<typeof aVariant>): string[] | null {
  const found = batchedOf(aVariant(...variant));
  return (
    found?.map(({ axes, own }) => {
      const words = axes.map(({ kind, size }) => (kind === 'unbatched' ? kind : `${kind} ${size}`));
      return `${words.join(', ')} | ${own.join(', ')}`;
    }) ?? null
  );
}

const inner = (method: string): Level => [3, method, [false, true]];
const outer = (method: string): Level => [4, method, [true, false]];
const nested = (method: string): Level[] => [inner(method), outer(method)];

describe('batchedOf', () => {
  it('finds size-1 axes under expand_dims', () => {
    expect(rows([[4, 1, 5], [1, 3]], [[4, 3]], nested('expand_dims'))).toEqual([
      'batched 4, size1 1 | 5',
      'size1 1, batched 3 | ',
      'batched 4, batched 3 | '
    ]);
  });

  it('finds tiled axes under broadcast_all', () => {
    expect(rows([[4, 3, 5], [4, 3]], [[4, 3]], nested('broadcast_all'))).toEqual([
      'batched 4, tiled 3 | 5',
      'tiled 4, batched 3 | ',
      'batched 4, batched 3 | '
    ]);
  });

  it('finds unbatched operands under legacy_vectorized', () => {
    expect(rows([[4, 5], [3]], [[4, 3]], nested('legacy_vectorized'))).toEqual([
      'batched 4, unbatched | 5',
      'unbatched, batched 3 | ',
      'batched 4, batched 3 | '
    ]);
  });

  it.each(['sequential', 'sequential_unrolled'])('finds looped axes under %s', method => {
    expect(rows([[5], []], [[7]], nested(method))).toEqual([
      'looped 4, unbatched | 5',
      'unbatched, looped 3 | ',
      'looped 4, looped 3 | 7'
    ]);
  });

  it('separates looped axes from the others if methods are mixed', () => {
    const levels = [inner('expand_dims'), outer('sequential')];
    expect(rows([[1], [3]], [[3]], levels)).toEqual([
      'looped 4, size1 1 | ',
      'unbatched, batched 3 | ',
      'looped 4, batched 3 | '
    ]);
  });

  it.each([
    ['an operand of another size', [[5]], [[4]], [4, 'expand_dims', [true]]],
    ['an operand without the axis', [[]], [[4]], [4, 'expand_dims', [true]]],
    ['a result of another size', [[4]], [[5]], [4, 'expand_dims', [true]]],
    ['one flag too many', [[4]], [[4]], [4, 'expand_dims', [true, true]]],
    ['an unknown method', [[4]], [[4]], [4, 'magic', [true]]]
  ] as [string, number[][], number[][], Level][])('returns null for %s', (_, ins, outs, level) => {
    expect(rows(ins, outs, [level])).toBeNull();
  });
});

describe('elementWords', () => {
  it.each([
    [nested('expand_dims'), '4 × 3 elements in one call'],
    [nested('sequential'), '4 × 3 elements × one call'],
    [[inner('expand_dims'), outer('sequential')], '4 elements × one call with 3 elements'],
    [[[1, 'sequential', []]] as Level[], '1 element × one call']
  ])('describes how batch elements are distributed over calls (%#)', (levels, words) => {
    expect(elementWords(levels)).toBe(words);
  });
});

describe('batchingDiagram', () => {
  it('has a text alternative', () => {
    const variant = aVariant([[], [5]], [[]], [[4, 'sequential', [true, false]]]);
    expect(batchingDiagram(variant).getAttribute('aria-label')).toBe(
      'vmap 4 (batched, unbatched), sequential. ' +
        'operand 1: vmap 4 batched, looped over; the host sees (). ' +
        'operand 2: unbatched, no axis; the host sees (5,). ' +
        'result: vmap 4 batched, looped over; the host returns (). 4 elements × one call'
    );
  });

  it('explains only the kinds of axes that occur', () => {
    const diagram = batchingDiagram(aVariant([[4]], [[4]], [[4, 'expand_dims', [true]]]));
    const keys = [...diagram.querySelectorAll('.jaxcb-batching-key')];
    expect(keys.map(key => key.textContent)).toEqual(['batched: one entry per batch element']);
  });

  it('distinguishes kinds of axes by class, and looped axes by a sign too', () => {
    const diagram = batchingDiagram(aVariant([[]], [[]], [[4, 'sequential', [true]]]));
    expect(diagram.querySelector('.jaxcb-axis-looped')?.textContent).toBe('4 ×');
  });

  it('can be focused, and so scrolled, by keyboard', () => {
    const diagram = batchingDiagram(aVariant([[4]], [[4]], [[4, 'expand_dims', [true]]]));
    expect(diagram.tabIndex).toBe(0);
  });

  it('shows plain boxes without vmap', () => {
    const diagram = batchingDiagram(aVariant([[], [3]], [[3]]));
    const boxes = [...diagram.querySelectorAll('.jaxcb-axis')].map(box => box.textContent);
    expect(boxes).toEqual(['()float32', '(3,)float32', '(3,)float32']);
    expect(diagram.getAttribute('aria-label')).toBe('the host function maps (), (3,) → (3,)');
  });

  it('shows "nothing" for a call without operands and results', () => {
    expect(batchingDiagram(aVariant([], [])).textContent).toBe('nothing→nothing');
  });

  it('falls back to the shapes if they are inconsistent with vmap', () => {
    const diagram = batchingDiagram(aVariant([[9]], [[9]], [[4, 'expand_dims', [true]]]));
    expect(diagram.querySelector('.jaxcb-batching-grid')).toBeNull();
    expect(diagram.textContent).toContain('vmap 4, expand_dims');
  });

  it('draws a bounded number of boxes', () => {
    const shapes = Array<number[]>(900).fill([4]);
    const flags = Array<boolean>(900).fill(true);
    const diagram = batchingDiagram(aVariant(shapes, shapes, [[4, 'expand_dims', flags]]));
    expect(diagram.querySelectorAll('.jaxcb-axis').length).toBeLessThan(40);
    expect(diagram.textContent).toContain('and 884 more');
  });
});
