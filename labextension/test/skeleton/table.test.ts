import { expect, test } from 'vitest';
import { table } from '../../src/skeleton/table.js';

const SITE = {
  function: 'sine',
  flavor: 'pure',
  where: 'line 3',
  line: 3,
  tone: 'kept',
  status: '● 2 calls',
  reason: '',
  advice: '',
  shapes: [{ arrays: '() → ()', vmap: 'vmap 2, sequential', calls: '2 calls' }],
  errors: []
};
const MEASURED = { times: ['3 µs'], site: [0, 0], start_ns: [0, 50], duration_ns: [25, 50] };

test('a site is a row with the sentences that it has, and a bar for each call', () => {
  const node = table({ headline: '2 host calls', sites: [SITE] }, MEASURED);
  expect([...node.querySelectorAll('td')].map(cell => cell.textContent)).toEqual(
    ['sine · pure', 'line 3', '● 2 calls', '() → () · vmap 2, sequential', '', '3 µs', '']
  );
  expect([...node.querySelectorAll<HTMLElement>('.jaxcb-bars span')].map(bar => bar.style.left)).toEqual(['0%', '50%']);
  expect(node.querySelector('tfoot')).toBeNull();
});

test('what is missing or damaged shows as "?", and a sentence says so', () => {
  for (const sites of [[{ ...SITE, status: 7 }], [null], 'none']) {
    const node = table({ headline: '', sites: sites as never }, MEASURED);
    expect(node.querySelector('tfoot')?.textContent).toContain('damaged');
  }
  expect(table({ headline: 'x', sites: [{ ...SITE, shapes: 3 as never }] }, {}).textContent).toContain('damaged');
});

test('names are text', () => {
  const node = table({ headline: '', sites: [{ ...SITE, function: '<img src=x>' }] }, MEASURED);
  expect(node.querySelector('img')).toBeNull();
  expect(node.textContent).toContain('<img src=x>');
});
