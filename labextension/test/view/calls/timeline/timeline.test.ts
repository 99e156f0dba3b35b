import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { EVERYTHING, type Store } from '../../../../src/view/data/store.js';
import { Timeline } from '../../../../src/view/calls/timeline/timeline.js';
import { type Call, columns, storeOf } from '../stores.js';
import { click, drag, fakePen, key, pointer, wheel } from '../../gestures.js';

describe('Timeline', () => {
  const WIDTH = 900; // of which 128 are for names and 8 for the edge
  let frames: FrameRequestCallback[];
  let drawn: string[];
  let fills: string[];
  let opened: Timeline[];

  beforeEach(() => {
    frames = [];
    drawn = [];
    fills = [];
    opened = [];
    vi.stubGlobal('requestAnimationFrame', (each: FrameRequestCallback) => frames.push(each));
    vi.stubGlobal('cancelAnimationFrame', () => undefined);
    vi.spyOn(HTMLElement.prototype, 'clientWidth', 'get').mockReturnValue(WIDTH);
    vi.spyOn(HTMLElement.prototype, 'clientHeight', 'get').mockReturnValue(100);
    const pen = fakePen(drawn, fills) as unknown as RenderingContext;
    vi.spyOn(HTMLCanvasElement.prototype, 'getContext').mockReturnValue(pen);
  });

  afterEach(() => {
    opened.forEach(each => each.dispose());
    vi.restoreAllMocks();
    vi.unstubAllGlobals();
    document.body.replaceChildren();
  });

  const CALLS: Call[] = [
    { start: 0, duration: 100 },
    { start: 200, duration: 100, variant: 1, thread: 1, element: 2 },
    { start: 400, duration: 100, error: 1 },
    { start: 900, duration: 100, variant: 1 }
  ];

  function draw(): string[] {
    drawn.length = 0;
    fills.length = 0;
    frames.splice(0).forEach(each => each(0));
    return drawn;
  }

  function open(store: Store): { timeline: Timeline; canvas: HTMLCanvasElement } {
    const timeline = new Timeline(store);
    opened.push(timeline);
    document.body.append(timeline.node);
    draw();
    return { timeline, canvas: timeline.node.querySelector('canvas')! };
  }

  const x = (ns: number) => 128 + (ns / 1000) * (WIDTH - 136);

  function zoomTo(canvas: HTMLElement, from: number, to: number): void {
    drag(canvas, x(from), x(to), true);
    key(canvas, 'f');
  }

  function rangeOf({ node }: Timeline): string {
    const box = node.querySelector<HTMLElement>('.jaxcb-timeline-range')!;
    return box.hidden ? '' : box.querySelector('[role=status]')!.textContent!;
  }

  test('shows the range and the colors that an earlier timeline of the cell showed', () => {
    const store = storeOf(CALLS);
    const { timeline, canvas } = open(store);
    key(canvas, '+');
    timeline.node.querySelector<HTMLElement>('[aria-label="Color by duration"]')!.click();
    draw();
    const { zoom } = store.layout;
    expect(zoom![1] - zoom![0]).toBeCloseTo(600);
    const next = storeOf(CALLS);
    next.layout = { ...store.layout };
    const again = open(next).timeline.node;
    expect(next.layout.zoom).toEqual(zoom);
    expect(again.querySelector('[aria-pressed=true]')!.textContent).toBe('duration');
  });

  test('reaches to the present in a running cell, also without any call', () => {
    const store = storeOf([]);
    open(store);
    store.nowNs = 3e9;
    store.grown();
    expect(draw()).toEqual(expect.arrayContaining(['0', '1.5 s', '3.0 s']));
  });

  test('reaches back to a call that began before the first one to arrive', () => {
    const store = storeOf(CALLS);
    const { canvas } = open(store);
    store.calls.append(columns([{ start: 0, duration: 100 }]), -200);
    store.grown();
    draw();
    click(canvas, 128 + (50 / 1200) * (WIDTH - 136), 34);
    expect(store.selected).toBe(4);
  });

  test('draws the names of functions and threads', () => {
    const store = storeOf(CALLS);
    open(store);
    store.grown();
    const texts = draw();
    expect(texts).toEqual(expect.arrayContaining(['bessel', 'lookup', 'MainThread', 'worker-1']));
    expect(texts).toContain('✕ bessel');
  });

  test('makes room for long thread names', () => {
    const threads = ['MainThread', 'process 1 · worker 2 · jaxcb-threads_1'];
    const store = storeOf(CALLS, { threads });
    const names = 6 * threads[1]!.length + 16;
    const { canvas } = open(store);
    click(canvas, names + 0.25 * (WIDTH - names - 8), 60);
    expect(store.selected).toBe(1);
    expect(drawn).toContain(threads[1]);
  });

  test('has a text alternative', () => {
    const { canvas } = open(storeOf(CALLS));
    expect(canvas.getAttribute('aria-label')).toBe(
      'Timeline of 4 calls on 2 threads in 1 µs, 1 failed'
    );
    expect(canvas.tabIndex).toBe(0);
  });

  test('a click selects a call, and a click on an empty area clears the selection', () => {
    const store = storeOf(CALLS);
    const { canvas } = open(store);
    click(canvas, x(250), 60);
    expect(store.selected).toBe(1);
    click(canvas, x(250), 34);
    expect(store.selected).toBeNull();
  });

  test('describes the selected call as text, whichever view selected it', () => {
    const store = storeOf(CALLS);
    const { timeline } = open(store);
    store.select(2);
    const selectedText = timeline.node.querySelector('.jaxcb-timeline-selected')!.textContent;
    expect(selectedText).toBe(
      'call 3 · bessel, line 3 · 100 ns at 0.4 µs · (3,) → () · MainThread · ✕ ValueError: no luck'
    );
    store.select(null);
    expect(timeline.node.querySelector('.jaxcb-timeline-selected')!.textContent).toBe('');
  });

  test('pans to a call that another view selected', () => {
    const store = storeOf(CALLS);
    const { canvas } = open(store);
    zoomTo(canvas, 0, 100);
    expect(draw()).not.toContain('lookup');
    store.select(3);
    expect(draw()).toContain('lookup');
  });

  test('keys select the next or previous call that passes the filter', () => {
    const store = storeOf(CALLS);
    const { canvas } = open(store);
    store.narrow({ ...EVERYTHING, site: 1 });
    const selected = [']', 'n', 'n', '[', 'p'].map(each => (key(canvas, each), store.selected));
    expect(selected).toEqual([1, 3, 3, 1, 1]);
    key(canvas, 'Escape');
    expect(store.selected).toBeNull();
  });

  test('keys zoom, pan and reset the window', () => {
    const { canvas } = open(storeOf(CALLS));
    const visibleNames = () => draw().filter(text => text === 'bessel' || text === 'lookup');
    key(canvas, '+');
    key(canvas, '+');
    key(canvas, '+');
    key(canvas, 'End');
    expect(visibleNames()).toEqual(['lookup']);
    key(canvas, 'Home');
    expect(visibleNames()).toEqual(['bessel', 'lookup']);
    expect(key(canvas, '0')).toBe(false);
    expect(visibleNames()).toEqual(['bessel', 'lookup', 'lookup']);
  });

  test('does not handle Tab, unknown keys and keys pressed with Ctrl', () => {
    const { canvas } = open(storeOf(CALLS));
    expect(['Tab', 'x', 'F5'].map(each => key(canvas, each))).toEqual([true, true, true]);
    expect(key(canvas, '0', { ctrlKey: true })).toBe(true);
  });

  test('Enter selects a call near the middle, then zooms in on it', () => {
    const store = storeOf(CALLS);
    const { canvas } = open(store);
    key(canvas, 'Enter');
    expect(store.selected).toBe(3);
    key(canvas, 'Enter');
    expect(draw()).not.toContain('bessel');
  });

  test('lets the wheel scroll the page unless Ctrl is pressed or the canvas has the focus', () => {
    const { canvas } = open(storeOf(CALLS));
    expect(wheel(canvas, {})).toBe(true);
    expect(wheel(canvas, { ctrlKey: true })).toBe(false);
    canvas.focus();
    expect(wheel(canvas, {})).toBe(false);
  });

  test('a drag with Shift marks a range and shows count, sum and median of its calls', () => {
    const { timeline, canvas } = open(storeOf(CALLS));
    drag(canvas, x(250), x(950), true);
    expect(rangeOf(timeline)).toBe(
      '700 ns: 3 calls · sum 200 ns · median 100 ns · ✕ 1 failed'
    );
    key(canvas, 'Escape');
    expect(rangeOf(timeline)).toBe('');
  });

  test('a drag on the axis marks a range, backwards too, and a click there removes it', () => {
    const { timeline, canvas } = open(storeOf(CALLS));
    pointer(canvas, 'pointerdown', x(300), 5);
    pointer(canvas, 'pointermove', x(-50), 90);
    expect(rangeOf(timeline)).toBe('300 ns: 2 calls · sum 200 ns · median 100 ns');
    pointer(canvas, 'pointerup', x(-50), 90);
    expect(rangeOf(timeline)).toBe('300 ns: 2 calls · sum 200 ns · median 100 ns');
    click(canvas, x(700), 5);
    expect(rangeOf(timeline)).toBe('');
  });

  test('M marks what is shown, and the range keeps its time when the user zooms out', () => {
    const { timeline, canvas } = open(storeOf(CALLS));
    zoomTo(canvas, 350, 550);
    key(canvas, 'Escape');
    key(canvas, 'm');
    key(canvas, '0');
    expect(rangeOf(timeline)).toBe('200 ns: 1 call · sum 100 ns · median 100 ns · ✕ 1 failed');
    drag(canvas, x(600), x(700), true);
    expect(rangeOf(timeline)).toBe('100 ns: 0 calls');
  });

  test('the figures of a range are of the calls that pass the filters, and its buttons work', () => {
    const store = storeOf(CALLS);
    const { timeline, canvas } = open(store);
    drag(canvas, x(0), x(1000), true);
    store.narrow({ ...EVERYTHING, site: 1 });
    expect(rangeOf(timeline)).toBe(
      '1 µs: 2 calls that pass the filters · sum 200 ns · median 100 ns'
    );
    store.narrow(EVERYTHING);
    drag(canvas, x(190), x(310), true);
    const [zoom, remove] = timeline.node.querySelectorAll<HTMLElement>('.jaxcb-timeline-range button');
    zoom!.click();
    expect(draw().filter(text => text === 'bessel' || text === 'lookup')).toEqual(['lookup']);
    remove!.click();
    expect(rangeOf(timeline)).toBe('');
  });

  test('W, A, S and D zoom and pan as in Perfetto and Chrome; the pointer keeps its time', () => {
    const { canvas } = open(storeOf(CALLS));
    const store = storeOf(CALLS);
    const { canvas: other } = open(store);
    const zoom = () => (draw(), store.layout.zoom!.map(Math.round));
    pointer(other, 'pointermove', x(200), 36);
    key(other, 'w');
    expect(zoom()).toEqual([80, 680]);
    key(other, 'w');
    expect(zoom()).toEqual([128, 488]);
    key(other, 'd');
    expect(zoom()).toEqual([182, 542]);
    key(other, 'a');
    key(other, 's');
    expect(zoom()).toEqual([80, 680]);
    expect(['w', 'a', 's', 'd'].map(each => key(canvas, each, { ctrlKey: true }))).toEqual(
      Array(4).fill(true)
    );
  });

  test('lanes become taller by a drag of the edge below them, or by its keys', () => {
    const store = storeOf(CALLS);
    const { timeline, canvas } = open(store);
    const grip = timeline.node.querySelector<HTMLElement>('[role=separator]')!;
    const value = () => ['min', 'max', 'now'].map(each => grip.getAttribute(`aria-value${each}`));
    expect([value(), canvas.style.height]).toEqual([['44', '176', '44'], '68px']);
    pointer(grip, 'pointerdown', 0, 100);
    pointer(grip, 'pointermove', 0, 156);
    pointer(grip, 'pointerup', 0, 156);
    pointer(grip, 'pointermove', 0, 300);
    expect([value()[2], canvas.style.height, store.layout.height]).toEqual(['100', '124px', 100]);
    click(canvas, x(250), 22 + 50 + 10);
    expect(store.selected).toBe(1); // in the second lane, which now begins lower
    const sizes = ['End', 'ArrowUp', 'ArrowDown', 'Home'].map(each => (key(grip, each), value()[2]));
    expect(sizes).toEqual(['176', '154', '176', '44']);
    key(grip, 'End');
    grip.dispatchEvent(new MouseEvent('dblclick'));
    expect([value()[2], store.layout.height]).toEqual(['44', null]);
    expect(key(grip, 'Tab')).toBe(true);
  });

  test('the colors of durations are scaled to the calls shown', () => {
    const calls = [100, 700, 700, 900_000].map((duration, n) => ({ start: 1_000 * n, duration }));
    const store = storeOf(calls);
    const { timeline, canvas } = open(store);
    canvas.style.setProperty('--jaxcb-duration-0', 'rgb(2, 2, 2)');
    canvas.style.setProperty('--jaxcb-duration-6', 'rgb(3, 3, 3)');
    timeline.node.querySelector<HTMLElement>('[aria-label="Color by duration"]')!.click();
    const legend = timeline.node.querySelector<HTMLElement>('.jaxcb-timeline-ramp')!;
    const bars = () => (draw(), fills.filter(each => each.startsWith('rgb')));
    bars();
    expect(legend.textContent).toBe('100 ns900 µs');
    store.select(0);
    key(canvas, 'Enter');
    for (let n = 0; n < 3; n++) {
      key(canvas, '-');
    }
    expect(new Set(bars())).toEqual(new Set(['rgb(2, 2, 2)', 'rgb(3, 3, 3)']));
    expect(legend.textContent).toBe('100 ns700 ns');
    store.narrow({ ...EVERYTHING, durations: [600, 1_000] });
    bars();
    expect(legend.textContent).toBe('700 ns700 ns');
  });

  test('F zooms to the marked range, and a double click zooms out', () => {
    const { canvas } = open(storeOf(CALLS));
    zoomTo(canvas, 190, 310);
    expect(draw().filter(text => text === 'bessel' || text === 'lookup')).toEqual(['lookup']);
    canvas.dispatchEvent(new MouseEvent('dblclick'));
    expect(draw()).toContain('bessel');
  });

  test('a drag pans without selecting a call', () => {
    const store = storeOf(CALLS);
    const { canvas } = open(store);
    zoomTo(canvas, 0, 150);
    drag(canvas, x(900), x(100), false);
    expect(draw()).toContain('lookup');
    expect(store.selected).toBeNull();
  });

  test('shows all details of the call below the pointer, as plain text', () => {
    const store = storeOf(CALLS, { sites: ['<b>f</b>, line 3', 'g, line 4'] });
    const { timeline, canvas } = open(store);
    pointer(canvas, 'pointermove', x(450), 36);
    const details = timeline.node.querySelector<HTMLElement>('[role=tooltip]')!;
    expect(details.hidden).toBe(false);
    const words = ['<b>f</b>, line 3', 'call 3', '0.4 µs', '100 ns', '✕ ValueError: no luck'];
    for (const each of words) {
      expect(details.textContent).toContain(each);
    }
    expect(details.querySelector('b')).toBeNull();
    canvas.dispatchEvent(new MouseEvent('pointerleave'));
    expect(details.hidden).toBe(true);
  });

  test('shows the crossing of the call below the pointer, whichever threads its calls are on', () => {
    const calls = [0, 300, 600].map((start, n) => ({ start, duration: 100, thread: n % 2, crossing: 4 }));
    const { timeline, canvas } = open(storeOf([...calls, { start: 900, duration: 100, crossing: 5 }]));
    const details = timeline.node.querySelector<HTMLElement>('[role=tooltip]')!;
    const words = (): string[] => [...details.querySelectorAll('dd')].map(one => one.textContent!);
    pointer(canvas, 'pointermove', x(50), 36);
    expect(words()).toContain('3 calls in 700 ns');
    pointer(canvas, 'pointermove', x(950), 36);
    expect(details.textContent).not.toContain('crossing');
  });

  test('draws and explains the outlines around crossings if there are any', () => {
    const legend = ({ timeline }: { timeline: Timeline }): HTMLElement =>
      timeline.node.querySelector<HTMLElement>('.jaxcb-timeline-crossing')!;
    const calls = CALLS.map(call => ({ ...call, error: 0 }));
    expect(legend(open(storeOf(calls))).hidden).toBe(true);
    expect(drawn).not.toContain('strokeRect');
    const many = legend(open(storeOf([0, 300].map(start => ({ start, crossing: 1 })))));
    expect(many.hidden).toBe(false);
    expect(drawn).toContain('strokeRect');
    expect(many.querySelector('abbr')!.title).toMatch(/^Crossing: One round trip/);
  });

  test('draws the outline around an inner crossing on the outer call and behind the inner ones', () => {
    const inner = [300, 600].map(start => ({ start, duration: 200, variant: 1, crossing: 2 }));
    const store = storeOf([{ start: 0, duration: 1000, crossing: 1 }, ...inner]);
    open(store);
    const parts = (): string[] => drawn.filter(each => /^(bessel|lookup|strokeRect)$/.test(each));
    const onOuter = ['strokeRect', 'strokeRect'];
    expect(parts()).toEqual(['bessel', ...onOuter, 'lookup', 'lookup']);
    store.narrow({ ...EVERYTHING, site: 1 });
    draw();
    expect(parts()).toEqual([...onOuter, 'lookup', 'lookup']);
  });

  test('shows how many calls share the pixel below the pointer', () => {
    const many = Array.from({ length: 20_000 }, (_, n) => ({ start: 20 * n }));
    const { timeline, canvas } = open(storeOf(many));
    pointer(canvas, 'pointermove', 500, 36);
    expect(timeline.node.querySelector('[role=tooltip]')!.textContent).toMatch(/2\d calls in this/);
  });

  test('a click near several calls selects the failed call', () => {
    const many = Array.from({ length: 20_000 }, (_, n) => ({
      start: 20 * n,
      error: n === 10_000 ? 1 : 0
    }));
    const store = storeOf(many);
    const { canvas } = open(store);
    click(canvas, x(500) + 2, 36);
    expect(store.selected).toBe(10_000);
  });

  test('marks calls that returned NaN or infinity, and says so', () => {
    const store = storeOf(CALLS, { notFinite: new Map([[0, true], [1, false], [3, false]]) });
    const { canvas } = open(store);
    const marks = () => (store.grown(), draw().filter(each => each === 'closePath').length);
    expect(marks()).toBe(3);
    store.narrow({ ...EVERYTHING, site: 0 });
    expect(marks()).toBe(1);
    expect(canvas.getAttribute('aria-label')).toContain('1 failed, 3 NaN or infinity');
    pointer(canvas, 'pointermove', x(250), 50);
    store.select(1);
    expect(document.querySelector('.jaxcb-timeline-selected')!.textContent).toContain(
      'returned NaN or infinity for finite arguments'
    );
  });

  test('marks failed calls even when zoomed out', () => {
    const many = Array.from({ length: 20_000 }, (_, n) => ({ start: 20 * n }));
    const store = storeOf(many);
    open(store);
    const crosses = () => (store.grown(), draw().filter(each => each === 'moveTo').length);
    expect(crosses()).toBe(0);
    store.calls.append(columns([{ start: 100, error: 1 }, { start: 120, error: 1 }]), 4e5);
    expect(crosses()).toBe(2);
  });

  test('dims calls that do not pass the filter', () => {
    const store = storeOf(CALLS);
    open(store);
    store.narrow({ ...EVERYTHING, site: 0 });
    expect(draw()).not.toContain('lookup');
    expect(drawn).toContain('bessel');
  });

  test('colors calls by site or by duration, with a legend of durations', () => {
    const calls = [{ start: 0, duration: 100 }, { start: 200, duration: 700 }];
    const { timeline, canvas } = open(storeOf(calls));
    canvas.style.setProperty('--jaxcb-site-0', 'rgb(1, 1, 1)');
    canvas.style.setProperty('--jaxcb-duration-0', 'rgb(2, 2, 2)');
    canvas.style.setProperty('--jaxcb-duration-6', 'rgb(3, 3, 3)');
    const [site, duration] = timeline.node.querySelectorAll<HTMLElement>('[role=group] button');
    const legend = timeline.node.querySelector<HTMLElement>('.jaxcb-timeline-ramp')!;
    const bars = () => (draw(), fills.filter(each => each.startsWith('rgb')));
    site!.click();
    expect([bars(), legend.hidden]).toEqual([['rgb(1, 1, 1)', 'rgb(1, 1, 1)'], true]);
    duration!.click();
    expect([bars(), legend.hidden]).toEqual([['rgb(2, 2, 2)', 'rgb(3, 3, 3)'], false]);
    expect(legend.textContent).toBe('100 ns700 ns');
    expect(legend.querySelectorAll('[title]')[1]!.getAttribute('title')).toBe('132 ns – 174 ns');
    expect([site!.ariaPressed, duration!.ariaPressed]).toEqual(['false', 'true']);
  });

  test('shows its keys on request only', () => {
    const { timeline, canvas } = open(storeOf(CALLS));
    const button = timeline.node.querySelector<HTMLElement>('[aria-controls]')!;
    const shown = () => [
      timeline.node.querySelectorAll('.jaxcb-timeline-hint-shown').length,
      button.getAttribute('aria-expanded')
    ];
    expect(shown()).toEqual([0, 'false']);
    button.click();
    expect(shown()).toEqual([1, 'true']);
    expect(key(canvas, '?')).toBe(false);
    expect(shown()).toEqual([0, 'false']);
  });

  const COMPILED = [
    { program: 'jit_f', lower_ns: 100, compile_ns: 900, start_ns: -2000 },
    { program: 'jit_g', lower_ns: 20, compile_ns: 100, start_ns: -130 }
  ];

  test('draws compilations on a band above the threads', () => {
    const store = storeOf(CALLS, { compilations: COMPILED });
    const { canvas } = open(store);
    store.grown();
    expect(draw()).toEqual(expect.arrayContaining(['compilation', 'jit_g', 'MainThread']));
    expect(drawn).not.toContain('jit_f'); // too long ago: the calls would be too small to see
    expect(canvas.getAttribute('aria-label')).toContain('1 failed, 2 compilations');
    key(canvas, '0');
    expect(draw()).toContain('jit_f');
    const whole = 128 + ((2000 + 250) / 3000) * (WIDTH - 136);
    click(canvas, whole, 82);
    expect(store.selected).toBe(1);
  });

  test('shows the times of the compilation below the pointer', () => {
    const { timeline, canvas } = open(storeOf(CALLS, { compilations: COMPILED }));
    key(canvas, '0');
    pointer(canvas, 'pointermove', 128 + (500 / 3000) * (WIDTH - 136), 36);
    const details = timeline.node.querySelector<HTMLElement>('[role=tooltip]')!;
    expect([details.hidden, details.textContent]).toEqual([
      false, 'jit_fstart2 µs before the first calllowered100 nscompiled900 ns'
    ]);
    pointer(canvas, 'pointermove', 128 + (1500 / 3000) * (WIDTH - 136), 36);
    expect(details.hidden).toBe(true);
  });

  test('follows new calls unless the user has zoomed', () => {
    const store = storeOf(CALLS);
    const { canvas } = open(store);
    const more = columns([{ start: 0, duration: 1000, variant: 1, thread: 1 }]);
    store.calls.append(more, 1000);
    store.grown();
    expect(draw().filter(each => each.startsWith('lo'))).toHaveLength(3);
    zoomTo(canvas, 0, 50);
    store.calls.append(more, 2000);
    store.grown();
    expect(draw().filter(each => each.startsWith('lo'))).toHaveLength(0);
  });

  test('is drawn once per frame, however many changes there are', () => {
    const store = storeOf(CALLS);
    open(store);
    store.grown();
    store.grown();
    store.select(1);
    expect(frames).toHaveLength(1);
  });

  test('is drawn again when the theme changes', async () => {
    open(storeOf(CALLS));
    document.body.setAttribute('data-jp-theme-light', 'false');
    await Promise.resolve();
    expect(frames).toHaveLength(1);
    document.body.removeAttribute('data-jp-theme-light');
  });

  test('ignores changes after disposal', async () => {
    const store = storeOf(CALLS);
    const { timeline } = open(store);
    timeline.dispose();
    store.grown();
    document.body.setAttribute('data-jp-theme-light', 'true');
    await Promise.resolve();
    expect(frames).toHaveLength(0);
  });

  test('works without calls and without a drawing context', () => {
    vi.spyOn(HTMLCanvasElement.prototype, 'getContext').mockReturnValue(null);
    const { canvas } = open(storeOf([]));
    expect(['n', 'Enter', '+', '0'].map(each => key(canvas, each))).toEqual(Array(4).fill(false));
  });
});
