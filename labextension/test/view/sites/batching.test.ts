import { describe, expect, it } from 'vitest';

import { batchedOf, elementWords } from '../../../src/view/sites/batching-axes.js';
import { batchingDiagram } from '../../../src/view/sites/batching.js';
import type { Axes, Level, Stopped, Variant } from '../../../src/view/data/schema.js';
import { variantShapes } from '../../../src/view/data/words.js';
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

function namesIn(diagram: Element): (string | null)[] {
  return [...diagram.querySelectorAll('.jaxcb-batching-name')].map(name => name.textContent);
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

  it('draws what a method did that only the kernel knows', () => {
    const levels: Level[] = [[4, 'magic', [true, false]]];
    const axes: Axes[] = [{ operands: ['batched', 'tiled'], results: 'batched', mask: undefined }];
    expect(rows([[4], [4, 5]], [[4]], levels, { axes })).toEqual([
      'batched 4 | ',
      'tiled 4 | 5',
      'batched 4 | '
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
  const mixed = [inner('expand_dims'), outer('sequential')];
  const two = [[2, 'sequential', [true, false]] as Level, ...mixed];
  const one = [[1, 'sequential', []]] as Level[];
  it.each([
    [nested('expand_dims'), 1, '1 call for 12 elements (4 × 3)'],
    [nested('expand_dims'), 3, '3 calls, each for 12 elements (4 × 3)'],
    [nested('expand_dims'), 0, '1 call for 12 elements (4 × 3) each time'],
    [nested('sequential'), 12, '12 calls (4 × 3), one for each element'],
    [nested('sequential'), 24, '24 calls, 12 (4 × 3) each time, one for each element'],
    [nested('sequential'), 7, '7 calls, 12 (4 × 3) each time, one for each element'],
    [nested('sequential'), 0, '12 calls (4 × 3) each time, one for each element'],
    [mixed, 4, '4 calls, each for 3 elements'],
    [mixed, 8, '8 calls, 4 each time, each for 3 elements'],
    [two, 8, '8 calls (4 × 2), each for 3 elements'],
    [one, 1, '1 call for 1 element'],
    [one, 2, '2 calls, each for 1 element'],
    [[[0, 'sequential', []]] as Level[], 0, 'no calls, because the batch is empty'],
    [[[0, 'expand_dims', []]] as Level[], 0, 'no calls, because the batch is empty'],
    [[[12_000, 'expand_dims', []]] as Level[], 1, '1 call for 12,000 elements']
  ])('says how batch elements are distributed over calls (%#)', (levels, calls, words) => {
    expect(elementWords(aVariant([], [], levels, { calls }))).toBe(words);
  });

  it.each([
    [nested('sequential'), 9, [8, 1], '9 of 12 calls (4 × 3); stopped at element 8'],
    [
      nested('sequential'),
      33,
      [8, 1],
      '33 calls, 12 (4 × 3) each time, one for each element; stopped at element 8'
    ],
    [
      nested('sequential'),
      15,
      [8, 3],
      '15 calls, 12 (4 × 3) each time, one for each element; stopped 3 times, first at element 8'
    ],
    [mixed, 2, [1, 1], '2 of 4 calls, each for 3 elements; stopped at element 1']
  ] as [Level[], number, Stopped, string][])(
    'says at which element the calls stopped (%#)',
    (levels, calls, stopped, words) => {
      expect(elementWords(aVariant([], [], levels, { calls, stopped }))).toBe(words);
    }
  );
});

describe('a masked call', () => {
  const levels: Level[] = [
    [3, 'expand_dims', [true, false]],
    [4, 'expand_dims', [true, false]]
  ];
  const masked = (more: Partial<Variant> = {}): Variant =>
    aVariant([[4, 3, 5], [1, 1]], [[4, 3]], levels, {
      operand_names: ['x', 'w'],
      mask: [[true, true], 5, 12],
      ...more
    });

  it.each([
    [{ calls: 1 }, '1 call for 5 of 12 elements'],
    [{ calls: 0, mask: [[true], 0, 1] }, '0 calls for 0 of 1 element'],
    [{ calls: 0, mask: [[true], 0, 0] }, 'calls for the elements whose mask is true']
  ] as [Partial<Variant>, string][])('counts the elements that needed it (%#)', (more, words) => {
    expect(elementWords(masked(more))).toBe(words);
  });

  it('gets the needed elements on one axis, and not the mask', () => {
    const rows = batchedOf(masked());
    expect(rows?.map(({ name, host }) => `${name}: ${host}`)).toEqual([
      'x: (≤ 12, 5)',
      'w: (1,)',
      'mask: not passed',
      'result: (≤ 12,)'
    ]);
    expect(variantShapes(masked())).toBe('(≤ 12, 5), (1,) → (≤ 12,)');
  });

  it('gets an argument that no vmap maps over unchanged if it is vectorized by itself', () => {
    const flags: Level[] = [[4, 'legacy_vectorized', [true, false]]];
    const variant = masked({ operands: [[[4, 5], 'f'], [[2], 'f']], results: [[[4], 'f']], levels: flags });
    expect(variantShapes(variant)).toBe('(≤ 4, 5), (2,) → (≤ 4,)');
  });

  it('gets one element at a time where the host loops', () => {
    const looped: Level[] = [[4, 'sequential', [true]]];
    const variant = masked({ operands: [[[5], 'f']], results: [[[], 'f']], levels: looped });
    expect(variantShapes(variant)).toBe('(5,) → ()');
  });

  it('shows the row of the mask among the arguments', () => {
    const names = [...batchingDiagram(masked()).querySelectorAll('.jaxcb-batching-name')];
    expect(names.map(name => name.textContent)).toEqual(['x', 'w', 'mask', 'result']);
  });

  it('has no diagram if the mask does not fit the vmaps', () => {
    const odd: Level[] = [[4, 'magic', []]];
    expect(batchedOf(masked({ operands: [], results: [], levels: odd }))).toBeNull();
  });
});

describe('batchingDiagram', () => {
  const level: Level = [4, 'sequential', [true, false]];

  it('has a text alternative', () => {
    const more = { calls: 4, operand_names: ['v', "params['w']"], result_names: ['result'] };
    const variant = aVariant([[], [5]], [[]], [level], more);
    expect(batchingDiagram(variant).getAttribute('aria-label')).toBe(
      '4 calls, one for each element. ' +
        'v: 4 looped over; each call receives () float32. ' +
        "params['w']: no axis; each call receives (5,) float32. " +
        'result: 4 looped over; and must return () float32'
    );
  });

  it('names arguments and results by parameter and path', () => {
    const names = { operand_names: ['v', 'z'], result_names: ["result['mean']"] };
    const diagram = batchingDiagram(aVariant([[], [5]], [[]], [level], { calls: 4, ...names }));
    expect(namesIn(diagram)).toEqual(['v', 'z', "result['mean']"]);
  });

  it('cuts a long name in its middle', () => {
    const names = ["params['weights']['bias_of_layer']", 'x'];
    const diagram = batchingDiagram(aVariant([[], [5]], [[]], [level], { operand_names: names }));
    expect(namesIn(diagram).slice(0, 2)).toEqual(["params['weig…_of_layer']", 'x']);
    expect(diagram.querySelector<HTMLElement>('.jaxcb-batching-name')!.title).toBe(names[0]);
  });

  it.each([[[]], [['v']]])('numbers arguments whose names are unknown (%j)', operand_names => {
    const diagram = batchingDiagram(aVariant([[], [5]], [[]], [level], { operand_names }));
    expect(namesIn(diagram)).toEqual(['argument 1', 'argument 2', 'result']);
  });

  it('shows what one call receives and must return, with the batch axes marked', () => {
    const variant = aVariant([[4, 1, 5], [1, 3]], [[4, 3]], nested('expand_dims'));
    const shapes = [...batchingDiagram(variant).querySelectorAll('.jaxcb-batching-host')];
    expect(shapes.map(shape => shape.textContent)).toEqual([
      '(4, 1, 5) float32',
      '(1, 3) float32',
      '(4, 3) float32'
    ]);
    const marked = [...shapes[0]!.querySelectorAll('span')].map(size => [size.className, size.textContent]);
    expect(marked).toEqual([
      ['jaxcb-size-batched', '4'],
      ['jaxcb-size-size1', '1']
    ]);
  });

  it('leaves looped axes out of what one call receives', () => {
    const diagram = batchingDiagram(aVariant([[5], []], [[7, 2]], nested('sequential')));
    const shapes = [...diagram.querySelectorAll('.jaxcb-batching-host')];
    expect(shapes.map(shape => shape.textContent)).toEqual([
      '(5,) float32',
      '() float32',
      '(7, 2) float32'
    ]);
  });

  it('writes the shape of one axis as Python does', () => {
    const diagram = batchingDiagram(aVariant([[4]], [[4]], [[4, 'expand_dims', [true]]]));
    expect(diagram.querySelector('.jaxcb-batching-host')?.textContent).toBe('(4,) float32');
  });

  it('says whether one call or each of several receives a shape', () => {
    const head = (method: string): string | undefined =>
      batchingDiagram(aVariant([[]], [[]], [[4, method, [false]]]))
        .querySelector('.jaxcb-batching-receives')
        ?.textContent;
    expect(head('sequential')).toBe('each call receives');
    const together = aVariant([[4]], [[4]], [[4, 'expand_dims', [true]]]);
    expect(batchingDiagram(together).textContent).toContain('one call receives');
  });

  it('explains only the kinds of axes that occur', () => {
    const diagram = batchingDiagram(aVariant([[4]], [[4]], [[4, 'expand_dims', [true]]]));
    const keys = [...diagram.querySelectorAll('.jaxcb-batching-legend > li')];
    expect(keys.map(key => key.textContent)).toEqual(['batched: one entry for each element']);
  });

  it('distinguishes kinds of axes by class and in words', () => {
    const diagram = batchingDiagram(aVariant([[]], [[]], [[4, 'sequential', [true]]]));
    expect(diagram.querySelector('.jaxcb-axis-looped')?.textContent).toBe('4looped over');
  });

  it('can be focused, and so scrolled, by keyboard', () => {
    const diagram = batchingDiagram(aVariant([[4]], [[4]], [[4, 'expand_dims', [true]]]));
    expect(diagram.tabIndex).toBe(0);
  });

  it('shows plain boxes without vmap', () => {
    const diagram = batchingDiagram(aVariant([[], [3]], [[3]], [], { operand_names: ['v', 'z'] }));
    const boxes = [...diagram.querySelectorAll('.jaxcb-axis')].map(box => box.textContent);
    expect(boxes).toEqual(['v ()float32', 'z (3,)float32', '(3,)float32']);
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
