import { describe, expect, it } from 'vitest';

import { batchingDiagram, smallDiagram } from '../../../src/view/sites/batching.js';
import type { Diagram } from '../../../src/view/data/schema.js';
import { aVariant } from '../recordings.js';

const NESTED: Diagram = {
  vmaps: ['vmap 4 (outermost)', 'vmap 3 (innermost)'],
  receives: 'one call receives',
  rows: [
    ["params['weights']['bias_of_layer']", [['batched', 4], ['size1', 1]], [5], '(4, 1, 5)', 'float32'],
    ['mask', [['unbatched', 4], ['batched', 3]], [], 'not passed', ''],
    ['result', [['batched', 4], ['batched', 3]], [], '(4, 3)', 'float32']
  ],
  results: 1
};

const drawn = (diagram: Partial<Diagram> = {}): HTMLElement =>
  batchingDiagram(aVariant('', { elements: '1 call for 12 elements', diagram: { ...NESTED, ...diagram } }));

function textsOf(node: HTMLElement, selector: string): (string | null)[] {
  return [...node.querySelectorAll(selector)].map(found => found.textContent);
}

describe('batchingDiagram', () => {
  it('has a text alternative', () => {
    expect(drawn().getAttribute('aria-label')).toBe(
      '1 call for 12 elements. ' +
        "params['weights']['bias_of_layer']: 4 batched, size 1; one call receives (4, 1, 5) float32. " +
        'mask: no axis, 3 batched; one call receives not passed. ' +
        'result: 4 batched, 3 batched; and must return (4, 3) float32'
    );
  });

  it('has a column for each vmap and a row for each array', () => {
    expect(textsOf(drawn(), '.jaxcb-batching-head')).toEqual([
      '',
      'vmap 4outermost',
      'vmap 3innermost',
      'own axes',
      '',
      'one call receives'
    ]);
    expect(textsOf(drawn(), '.jaxcb-axis')).toEqual(
      ['4batched', '1size 1', '5', '–no axis', '3batched', '4batched', '3batched']
    );
    expect(textsOf(drawn(), '.jaxcb-batching-returns')).toEqual(['and must return']);
  });

  it('cuts a long name in its middle', () => {
    expect(textsOf(drawn(), '.jaxcb-batching-name')).toEqual(["params['weig…_of_layer']", 'mask', 'result']);
    expect(drawn().querySelector<HTMLElement>('.jaxcb-batching-name')!.title).toBe(NESTED.rows[0]![0]);
  });

  it('marks the batch axes of what one call receives', () => {
    const host = drawn().querySelector('.jaxcb-batching-host')!;
    expect(host.textContent).toBe('(4, 1, 5) float32');
    const marked = [...host.querySelectorAll('span')].map(size => [size.className, size.textContent]);
    expect(marked).toEqual([
      ['jaxcb-size-batched', '4'],
      ['jaxcb-size-size1', '1']
    ]);
    const masked = drawn({ rows: [['x', [['batched', 4], ['batched', 3]], [5], '(≤ 12, 5)', 'float32']] });
    expect(masked.querySelector('.jaxcb-batching-host span')).toBeNull();
  });

  it('explains only the kinds of axes that occur', () => {
    const rows: Diagram['rows'] = [['x', [['looped', 4]], [], '()', 'float32']];
    expect(textsOf(drawn({ vmaps: ['vmap 4'], rows }), '.jaxcb-batching-legend > li')).toEqual([
      'looped over: one call for each element, without this axis'
    ]);
  });

  it('can be focused, and so scrolled, by keyboard, but not in a tooltip', () => {
    expect(drawn().tabIndex).toBe(0);
    const small = smallDiagram(aVariant('', { elements: '4 calls' }), NESTED);
    expect([small.querySelector('[tabindex]'), small.querySelector('ul')]).toEqual([null, null]);
    expect(small.textContent).toMatch(/^4 calls/);
  });

  it('says the shapes where there is nothing to draw', () => {
    const plain = batchingDiagram(aVariant('', { arrays: 'z float32[3] → float32[3]', vmaps: 'vmap 4, odd' }));
    expect(plain.textContent).toBe('z float32[3] → float32[3] vmap 4, odd');
  });
});
