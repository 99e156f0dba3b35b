import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import type { Profile } from '../../../src/view/data/schema.js';
import { ProfilePanel } from '../../../src/view/profile/panel.js';
import { fakePen, pointer } from '../gestures.js';
import { withoutSuppression } from '../keys.js';
import { aProfile } from './profiles.js';

const WIDTH = 1136; // of which 128 are for names and 8 for the edge
let frames: FrameRequestCallback[];
let drawn: string[];
let fills: string[];
let panel: ProfilePanel;

beforeEach(() => {
  [frames, drawn, fills] = [[], [], []];
  vi.stubGlobal('requestAnimationFrame', (each: FrameRequestCallback) => frames.push(each));
  vi.stubGlobal('cancelAnimationFrame', () => undefined);
  vi.spyOn(HTMLElement.prototype, 'clientWidth', 'get').mockReturnValue(WIDTH);
  vi.spyOn(HTMLElement.prototype, 'clientHeight', 'get').mockReturnValue(100);
  const pen = fakePen(drawn, fills) as unknown as RenderingContext;
  vi.spyOn(HTMLCanvasElement.prototype, 'getContext').mockReturnValue(pen);
});

afterEach(() => {
  panel.dispose();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  document.body.replaceChildren();
});

function open(more: Partial<Profile> = {}): void {
  panel = new ProfilePanel(aProfile(more));
  document.body.append(panel.node);
  for (const kind of ['host', 'xla', 'idle']) {
    // Not on the panel: jsdom does not inherit custom properties.
    panel.node.querySelector('canvas')?.style.setProperty(`--jaxcb-kind-${kind}`, `${kind} color`);
  }
}

function all(selector: string): HTMLElement[] {
  return [...panel.node.querySelectorAll<HTMLElement>(selector)];
}

/** The texts of the cells of each row that is shown. */
function rows(): string[][] {
  return all('tr')
    .filter(row => !row.hidden)
    .map(row => [...row.children].map(cell => cell.textContent));
}

function button(text: string): HTMLElement {
  return all('button').find(each => each.textContent.includes(text))!;
}

function draw(): string[] {
  drawn.length = fills.length = 0;
  frames.splice(0).forEach(each => each(0));
  return drawn;
}

function tooltip(): HTMLElement {
  return all('[role=tooltip]')[0]!;
}

const LONG: Partial<Profile> = {
  parts: [
    ...aProfile().parts,
    ...['add', 'mul', 'sin'].map(name => ({ ...aProfile().parts[3]!, name, wall_ns: 0, busy_ns: 0 }))
  ]
};

describe('the bar of ProfilePanel', () => {
  it('has segments that add up to the whole', () => {
    open();
    const shares = all('.jaxcb-profile-segment').map(each => Number(each.style.flexGrow));
    expect(shares).toEqual([80, 15, 5]);
  });

  it('is full if the kinds do not add up to the wall time', () => {
    open({ wall_ns: 4e9 });
    const shares = all('.jaxcb-profile-segment').map(each => Number(each.style.flexGrow));
    expect(shares.reduce((sum, share) => sum + share)).toBeCloseTo(100);
    expect(all('.jaxcb-profile-segment')[0]!.textContent).toBe('host functions20 %');
  });

  it('is an image whose text is the headline', () => {
    open();
    expect(all('.jaxcb-profile-bar')[0]!.getAttribute('role')).toBe('img');
    expect(all('.jaxcb-profile-bar')[0]!.getAttribute('aria-label')).toBe(aProfile().headline);
  });

  it('describes the segment below the pointer', () => {
    open();
    const segment = all('.jaxcb-profile-segment')[1]!;
    segment.dispatchEvent(new MouseEvent('pointermove', { bubbles: true }));
    expect(tooltip().hidden).toBe(false);
    expect(tooltip().textContent).toBe('XLA · 150 ms · 15 %');
    all('.jaxcb-profile-bar')[0]!.dispatchEvent(new MouseEvent('pointerleave'));
    expect(tooltip().hidden).toBe(true);
  });
});

describe('the texts of ProfilePanel', () => {
  it('are a list of advice, and the notes', () => {
    open();
    expect(all('.jaxcb-profile-advice li').map(each => each.textContent)).toEqual(aProfile().advice);
    expect(all('.jaxcb-profile-note').map(each => each.textContent)).toEqual(aProfile().notes);
  });

  it('have no list without advice', () => {
    open({ advice: [] });
    expect(all('ul')).toEqual([]);
  });

  it('are never HTML', () => {
    const parts = aProfile().parts.map(part => ({ ...part, name: '<img>', where: '<img>' }));
    const [name] = ['<img>'];
    open({ parts, advice: ['<img>'], notes: ['<img>'], headline: '<img>', lanes: [{ name, spans: [] }] });
    expect(all('img')).toEqual([]);
  });

  it('suppress JupyterLab shortcuts on every focusable element', () => {
    open(LONG);
    expect(all('button')).toHaveLength(2);
    expect(withoutSuppression(panel.node)).toEqual([]);
  });
});

describe('the table of ProfilePanel', () => {
  it('has a row for each kind, and below it one for each part', () => {
    open();
    expect(rows()).toEqual([
      ['What', 'Time', 'Share', 'Count', 'Busy'],
      ['host functions', '800 ms', '80 %', '', ''],
      ['simulate line 3', '700 ms', '70 %', '1,000', '1.4 s'],
      ['lookup model.py:12', '100 ms', '10 %', '2', ''],
      ['XLA', '150 ms', '15 %', '', ''],
      ['dot_general', '100 ms', '10 %', '7', ''],
      ['other', '50 ms', '5 %', '', ''],
      ['idle', '50 ms', '5 %', '', '']
    ]);
    expect(all('code').map(each => each.textContent)).toEqual(['simulate', 'lookup', 'dot_general']);
  });

  it('has the busy time only if a part has one that is not its wall time', () => {
    open({ parts: aProfile().parts.map(part => ({ ...part, busy_ns: 1.05 * part.wall_ns })) });
    expect(rows()[0]).toEqual(['What', 'Time', 'Share', 'Count']);
    expect(rows()[2]).toEqual(['simulate line 3', '700 ms', '70 %', '1,000']);
  });

  it('rounds no share to 0 %', () => {
    const [first, ...rest] = aProfile().kinds;
    open({ kinds: [{ ...first!, wall_ns: 4e6 }, ...rest] });
    expect(rows()[1]).toEqual(['host functions', '4 ms', '<1 %', '', '']);
  });

  it('names a part without a name as its kind', () => {
    const [first, ...rest] = aProfile().parts;
    open({ parts: [{ ...first!, name: '' }, ...rest] });
    expect(rows()[2]![0]).toBe('host functions line 3');
    expect(all('code')).toHaveLength(2);
  });

  it('shows three parts of a kind, and the others after a click', () => {
    open(LONG);
    const names = () => rows().map(([name]) => name).slice(5, 11);
    expect(names()).toEqual(['dot_general', 'other', 'add', '2 more', 'idle']);
    const more = button('2 more');
    expect(more.getAttribute('aria-expanded')).toBe('false');
    expect(more.getAttribute('aria-label')).toBe('2 more: XLA');
    more.click();
    expect(names()).toEqual(['dot_general', 'other', 'add', 'mul', 'sin', 'fewer']);
    expect(more.getAttribute('aria-expanded')).toBe('true');
    more.click();
    expect(names()).toEqual(['dot_general', 'other', 'add', '2 more', 'idle']);
  });

  it('has the color of its kind in each group', () => {
    open();
    const colours = all('tbody').map(body => body.style.getPropertyValue('--jaxcb-own'));
    expect(colours).toEqual(['host', 'xla', 'idle'].map(id => `var(--jaxcb-kind-${id})`));
  });

  it('has headers for rows, groups and columns', () => {
    open();
    const scopes = all('th').map(head => head.getAttribute('scope'));
    expect(new Set(scopes)).toEqual(new Set(['col', 'row', 'rowgroup']));
    expect(all('table')[0]!.getAttribute('aria-label')).toBe('Wall time by kind');
  });
});

describe('the lanes of ProfilePanel', () => {
  it('show the block, and its threads and devices after a click', () => {
    open();
    expect(draw()).toContain('wall time');
    expect(drawn).not.toContain('cpu:0');
    const show = button('Show threads and devices (2)');
    expect(show.getAttribute('aria-expanded')).toBe('false');
    show.click();
    expect(draw()).toEqual(expect.arrayContaining(['wall time', 'worker 1', 'cpu:0']));
    expect(show.getAttribute('aria-expanded')).toBe('true');
    expect(show.textContent).toBe('Hide threads and devices (2)');
    show.click();
    expect(draw()).not.toContain('cpu:0');
  });

  it('have no button if there is one lane', () => {
    open({ lanes: aProfile().lanes.slice(0, 1) });
    expect(all('button')).toEqual([]);
  });

  it('are absent if there are none', () => {
    open({ lanes: [] });
    expect(all('canvas')).toEqual([]);
  });

  it('have the names of parts on their spans, in the colors of the kinds', () => {
    open();
    expect(draw()).toEqual(expect.arrayContaining(['simulate', 'lookup', 'dot_general', 'idle']));
    expect(fills.filter(fill => fill.endsWith('color'))).toEqual([
      'xla color', 'host color', 'host color', 'xla color', 'idle color'
    ]);
  });

  it('have an axis that begins before the first call', () => {
    open();
    expect(draw()).toEqual(expect.arrayContaining(['−200 ms', '0', '800 ms']));
    expect(panel.node.textContent).toContain('time since the first call');
  });

  it('have an axis that begins at 0 if there are no calls', () => {
    open({ start_ns: null });
    expect(draw()).toEqual(expect.arrayContaining(['0', '1.0 s']));
    expect(drawn).not.toContain('−200 ms');
    expect(panel.node.textContent).toContain('time since the start');
  });

  it('are an image with a text', () => {
    open();
    expect(all('canvas')[0]!.getAttribute('role')).toBe('img');
    const words = 'Timeline of 1 s on 1 lane; the table has the figures';
    expect(all('canvas')[0]!.getAttribute('aria-label')).toBe(words);
  });

  it('describe the span below the pointer', () => {
    open();
    const canvas = all('canvas')[0]!;
    const x = (ns: number) => 128 + (ns / 1e9) * (WIDTH - 136);
    pointer(canvas, 'pointermove', x(5e8), 30);
    expect(tooltip().querySelector('strong')!.textContent).toBe('simulate, line 3');
    expect([...tooltip().querySelectorAll('dd')].map(each => each.textContent)).toEqual([
      'host functions', '100 ms before the first call', '700 ms', '700 ms · 70 %'
    ]);
    pointer(canvas, 'pointermove', 20, 30);
    expect(tooltip().hidden).toBe(true);
  });

  it('shade pixels with several spans in the color of what took longest in each', () => {
    const span = (place: number) => [place * 1e4, place % 4 ? 5e3 : 6e3, place % 4 ? 0 : 2];
    const spans = Array.from({ length: 1000 }, (_, place) => span(place));
    open({ lanes: [{ name: 'wall time', spans: spans.flat() }] });
    draw();
    expect(fills.filter(fill => fill === 'host color')).toHaveLength(10);
    expect(drawn).not.toContain('simulate');
  });

  it('dim what the row below the pointer is not about', () => {
    open();
    const row = all('tr').find(each => each.textContent.startsWith('lookup'))!;
    row.dispatchEvent(new MouseEvent('pointerenter'));
    draw();
    expect(fills.filter(fill => fill.endsWith('color'))).toEqual(['host color']);
    const dimmed = () => all('.jaxcb-profile-segment').map(each => each.className.includes('dimmed'));
    expect(dimmed()).toEqual([false, true, true]);
    row.parentElement!.dispatchEvent(new MouseEvent('pointerleave'));
    draw();
    expect(fills.filter(fill => fill.endsWith('color'))).toHaveLength(5);
    expect(dimmed()).toEqual([false, false, false]);
  });

  it('take a block of no time', () => {
    const kinds = aProfile().kinds.map(kind => ({ ...kind, wall_ns: 0 }));
    open({ wall_ns: 0, kinds, lanes: [{ name: 'wall time', spans: [0, 0, 0] }] });
    expect(draw()).toContain('wall time');
    expect(drawn.some(words => words.startsWith('−200'))).toBe(true);
    expect(rows()[1]).toEqual(['host functions', '0 ns', '0 %', '', '']);
  });

  it('are not drawn after the panel was disposed', () => {
    const cancel = vi.fn();
    vi.stubGlobal('cancelAnimationFrame', cancel);
    open();
    panel.dispose();
    expect(cancel).toHaveBeenCalled();
    expect(document.body.childElementCount).toBe(0);
  });
});
