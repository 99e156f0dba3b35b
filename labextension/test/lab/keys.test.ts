import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import { Badge } from '../../src/lab/badges/badge.js';
import { NotebookState } from '../../src/lab/kernel/service.js';
import { Panel } from '../../src/lab/panel/panel.js';
import { SiteList } from '../../src/view/sites/sites.js';
import { Distribution } from '../../src/view/calls/distribution/distribution.js';
import { figuresOf } from '../../src/view/calls/distribution/figures.js';
import { CallTable } from '../../src/view/calls/table/table.js';
import { Timeline } from '../../src/view/calls/timeline/timeline.js';
import { viewFooter } from '../../src/view/footer.js';
import { storeOf } from '../view/calls/stores.js';
import { fakePen } from '../view/gestures.js';
import { withoutSuppression } from '../view/keys.js';
import { aSite, BATCHED, someFacts, someMeasured, unusedSite } from '../view/recordings.js';
import { FakeKernel } from './kernels.js';
import { message, SITE } from './snapshots.js';

beforeEach(() => {
  vi.stubGlobal('requestAnimationFrame', () => 0);
  vi.stubGlobal('cancelAnimationFrame', () => undefined);
  const pen = fakePen([]) as RenderingContext;
  vi.spyOn(HTMLCanvasElement.prototype, 'getContext').mockReturnValue(pen);
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  document.body.replaceChildren();
});

function counts(...selectors: string[]): number[] {
  return selectors.map(selector => document.body.querySelectorAll(selector).length);
}

test('the site list and the footer suppress shortcuts on every focusable element', () => {
  const failed = aSite({ errors: ['ValueError: no luck\nat great length'] });
  const batched = aSite({ shapes: [BATCHED] });
  const facts = someFacts([failed, batched, ...Array.from({ length: 120 }, () => unusedSite())]);
  const compilations = [{ program: 'f', lower_ns: 1, compile_ns: 1, start_ns: null }];
  const measured = someMeasured({ compilations });
  const list = new SiteList(facts, { reveal: vi.fn(), filter: vi.fn() });
  document.body.append(list.node, viewFooter({ ...facts, left_out: 0 }, measured));
  list.node.querySelector<HTMLElement>('.jaxcb-sites-more')!.click();
  list.node.querySelector<HTMLElement>('.jaxcb-site:last-child .jaxcb-site-fold')!.click(); // batched
  for (const details of document.body.querySelectorAll('details')) {
    details.open = true;
    details.dispatchEvent(new Event('toggle'));
  }
  expect(counts('summary', '[role=img]', 'pre', 'li[tabindex]')).toEqual([3, 1, 1, 1]);
  expect(withoutSuppression(document.body)).toEqual([]);
});

test('the views of calls suppress shortcuts on every focusable element', async () => {
  const store = storeOf([{ start: 0 }, { start: 20, error: 1 }, { start: 40, variant: 1 }]);
  const figures = await figuresOf(store);
  const table = new CallTable(store, figures);
  const parts = [new Distribution(store, figures, '2 calls'), new Timeline(store), table];
  document.body.append(table.filters.node, ...parts.map(part => part.node));
  const found = counts('canvas', '[role=grid]', 'select', 'input', '[role=slider]');
  expect(found).toEqual([1, 1, 2, 3, 2]);
  expect(withoutSuppression(document.body)).toEqual([]);
  parts.forEach(part => part.dispose());
});

test('the side panel and the badges suppress shortcuts on every focusable element', () => {
  const panel = new Panel(vi.fn());
  const kernel = new FakeKernel();
  const notebook = new NotebookState();
  notebook.connect(kernel.connection);
  panel.follow(notebook);
  kernel.sends(message());
  const note = {
    tone: 'kept',
    sign: '●',
    text: '5 calls',
    name: SITE.function,
    title: '',
    details: [],
    vmap: null,
    place: { site: 0 }
  } as const;
  document.body.append(panel.node, new Badge([note], false, false, vi.fn()).toDOM());
  expect(counts('button', 'summary', 'select')).toEqual([3, 1, 1]);
  expect(withoutSuppression(document.body)).toEqual([]);
});
