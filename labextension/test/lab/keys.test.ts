import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import { Badge } from '../../src/lab/badges/badge.js';
import { NotebookState } from '../../src/lab/kernel/service.js';
import { Panel } from '../../src/lab/panel/panel.js';
import { LiveView } from '../../src/view/live/live.js';
import { TraceView } from '../../src/view/view.js';
import { penOf } from '../view/gestures.js';
import {
  aSite,
  aWay,
  someCalls,
  someFacts,
  someMeasured,
  someProgress,
  unusedSite
} from '../view/recordings.js';
import { FakeKernel } from './kernels.js';
import { message, SITE } from './made.js';

beforeEach(() => {
  vi.stubGlobal('requestAnimationFrame', () => 0);
  const pen = penOf([]) as RenderingContext;
  vi.spyOn(HTMLCanvasElement.prototype, 'getContext').mockReturnValue(pen);
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  document.body.replaceChildren();
});

/** What can have the focus, but does not keep its keys from JupyterLab's shortcuts. */
function open(): string[] {
  return [...document.body.querySelectorAll<HTMLElement>('*')]
    .filter(node => node.tabIndex >= 0 || node.matches('summary, [tabindex]'))
    .filter(node => node.getAttribute('data-lm-suppress-shortcuts') !== 'true')
    .map(node => node.outerHTML);
}

function count(selector: string): number {
  return document.body.querySelectorAll(selector).length;
}

test('a host trace keeps all keys to itself', async () => {
  const failed = aSite({ errors: ['ValueError: no luck\nat great length'] });
  const batched = aSite({ shapes: [aWay([[3]], [[3]], [[3, 'expand_dims', [true]]])] });
  const facts = someFacts([failed, batched, ...Array.from({ length: 120 }, () => unusedSite())]);
  const measured = someMeasured({
    compilations: [{ program: 'f', lower_ns: 1, compile_ns: 1 }]
  });
  const view = new TraceView({ reveal: vi.fn() });
  document.body.append(view.node);
  view.show(facts, measured, someCalls(3));
  for (const button of ['.jaxcb-disclosure', '.jaxcb-sites-more', '.jaxcb-tab:last-child']) {
    document.body.querySelector<HTMLElement>(button)!.click();
  }
  await vi.waitFor(() => expect(count('canvas')).toBe(1));
  for (const details of document.body.querySelectorAll('details')) {
    details.open = true;
    details.dispatchEvent(new Event('toggle'));
  }
  expect(['[role=grid]', 'select', 'summary', '[role=img]', 'pre'].map(count)).toEqual(
    [1, 2, 3, 2, 1]
  );
  expect(open()).toEqual([]);
  view.dispose();
});

test('so do a cell that runs, the side panel and the badges', () => {
  const live = new LiveView();
  live.update(someProgress(), []);
  const panel = new Panel(vi.fn());
  const kernel = new FakeKernel();
  const notebook = new NotebookState();
  notebook.hear(kernel.connection);
  panel.follow(notebook);
  kernel.says(message());
  const note = {
    tone: 'live',
    sign: '●',
    text: '5 calls',
    name: SITE.function,
    title: '',
    details: [],
    place: { site: 0 }
  } as const;
  document.body.append(live.node, panel.node, new Badge([note], false, vi.fn()).toDOM());
  expect([count('button'), count('summary'), count('select')]).toEqual([3, 2, 1]);
  expect(open()).toEqual([]);
});
