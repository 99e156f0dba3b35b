import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { beforeAll, expect, test, vi } from 'vitest';

let lab: typeof import('../../src/lab/outputs.js');
let surround: (typeof import('../../src/lab/around.js'))['surround'];

beforeAll(async () => {
  vi.stubGlobal('DragEvent', class extends MouseEvent {}); // Lumino needs it, jsdom lacks it
  lab = await import('../../src/lab/outputs.js');
  ({ surround } = await import('../../src/lab/around.js'));
});

const PLACE = { cell: 'c1', line: 3, source: 'f(x)', number: 21 };
const HTML =
  '<div class="jaxcb-report"><style>p { color: red }</style>' +
  '<p><span class="jaxcb-place">line 3, another cell</span>: lost</p>' +
  '<p><span class="jaxcb-place">model.py:7</span></p></div>';

async function rendered(html: string, metadata: unknown = { places: [PLACE] }) {
  const renderer = lab.outputs.rendererFactory.createRenderer({} as never);
  const data = { 'text/html': html, [lab.OUTPUT_TYPE]: { schema: 1 } };
  const model = { data, metadata: { [lab.OUTPUT_TYPE]: metadata } };
  await renderer.renderModel(model as unknown as IRenderMime.IMimeModel);
  return { renderer, node: renderer.node, model };
}

test('a line is a link, named by the number of its cell', async () => {
  const reveal = vi.fn();
  const others = { cell: () => '', openTab: vi.fn(), apply: vi.fn(async () => false), rerun: vi.fn(), save: vi.fn(), everything: vi.fn() };
  const of = vi.fn(() => ({ ...others, reveal }));
  surround(of);
  const { node, model } = await rendered(HTML);
  const link = node.querySelector('button')!;
  expect([link.textContent, link.title]).toEqual(['[21] line 3', 'go to [21] line 3']);
  expect(node.textContent).toBe('[21] line 3: lostmodel.py:7');
  link.click();
  const target = { cell: 'c1', line: 3, source: 'f(x)', elsewhere: true };
  expect(reveal).toHaveBeenCalledWith(target);
  expect(of).toHaveBeenCalledWith({ node, model });
});

test('links are in the order of the metadata, and a line in a file is none', async () => {
  const second = { cell: null, line: 7, source: '', number: 0 };
  const { node } = await rendered(HTML, { places: [PLACE, second] });
  expect([...node.querySelectorAll('button')].map(each => each.textContent)).toEqual(['[21] line 3']);
  expect(node.querySelectorAll('p')[1]!.textContent).toBe('model.py:7');
});

test.each([[null], [{ places: 'x' }], [{ places: [{ line: -1 }] }], [{ places: [] }]])(
  'without good metadata it reads as text (%j)',
  async metadata => {
    const { node } = await rendered(HTML, metadata);
    expect(node.querySelector('button')).toBeNull();
    expect(node.textContent).toBe('line 3, another cell: lostmodel.py:7');
  }
);

test('markup that outputs do not have is left out', async () => {
  const { node } = await rendered(
    '<div class="jaxcb-report"><script>bad()</script><img src="x" onerror="bad()">' +
      '<p class="lm-Menu jaxcb-advice" style="position:fixed" onclick="bad()" id="x">' +
      '<a href="javascript:bad()">a</a><b title="whole">bold</b></p></div>'
  );
  expect(node.innerHTML).toBe('<p class="jaxcb-advice"><b title="whole">bold</b></p>');
});

test('plots are drawn, stay open when the output is shown again, and bring no script', async () => {
  const html =
    '<div class="jaxcb-watch x"><table><caption>[4]</caption><tbody><tr class="jaxcb-watch-first">' +
    '<td><span class="jaxcb-place" title="[4] line 3">3</span></td><td><details><summary>' +
    '<svg width="9" viewBox="0 0 9 9" onload="bad()"><script>bad()</script><style>a</style>' +
    '<polyline class="jaxcb-plot-line" points="0,1 2,3" style="x"/><foreignObject><b>x</b></foreignObject>' +
    '<a href="javascript:bad()"><text x="1">3</text></a></svg></summary></details></td></tr></tbody></table></div>';
  const place = { cell: 'c1', line: 3, source: '', number: 0 };
  const { renderer, node, model } = await rendered(html, { places: [place] });
  expect(node.classList.contains('jaxcb-watch')).toBe(true);
  expect([...node.classList]).not.toContain('x');
  expect(node.querySelector('button')!.title).toBe('go to [4] line 3');
  expect(node.querySelector('svg')!.outerHTML).toBe(
    '<svg viewBox="0 0 9 9" width="9">' +
      '<polyline class="jaxcb-plot-line" points="0,1 2,3"></polyline></svg>'
  );
  expect(node.querySelector('svg')).toBeInstanceOf(SVGElement);
  node.querySelector('details')!.open = true;
  await renderer.renderModel(model as unknown as IRenderMime.IMimeModel);
  expect(node.querySelector('details')!.open).toBe(true);
});
