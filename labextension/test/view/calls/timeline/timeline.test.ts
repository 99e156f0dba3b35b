import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { EVERYTHING, type Store } from '../../../../src/view/data/store.js';
import { Timeline } from '../../../../src/view/calls/timeline/timeline.js';
import { type Call, columns, storeOf } from '../stores.js';
import { click, drag, fakePen, key, pointer, wheel } from '../../gestures.js';

const WIDTH = 900; // of which 128 are for names and 8 for the edge
let frames: FrameRequestCallback[];
let drawn: string[];
let fills: string[];
let opened: Timeline[];

beforeEach(() => {
  [frames, drawn, fills, opened] = [[], [], [], []];
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
const many = (failed = -1): Call[] =>
  Array.from({ length: 20_000 }, (_, n) => ({ start: 20 * n, error: n === failed ? 1 : 0 }));

function draw(): string[] {
  drawn.length = fills.length = 0;
  frames.splice(0).forEach(each => each(0));
  return drawn;
}

const functions = (): string[] => draw().filter(text => text === 'bessel' || text === 'lookup');

function open(store: Store) {
  const timeline = new Timeline(store);
  opened.push(timeline);
  document.body.append(timeline.node);
  draw();
  const find = (css: string) => timeline.node.querySelector<HTMLElement>(css)!;
  const range = () => (find('.jaxcb-timeline-range').hidden ? '' : find('.jaxcb-timeline-range [role=status]').textContent);
  return { timeline, find, range, canvas: find('canvas'), details: find('[role=tooltip]') };
}

const x = (ns: number, from = 0, span = 1000) => 128 + ((ns - from) / span) * (WIDTH - 136);

function zoomTo(canvas: HTMLElement, from: number, to: number): void {
  drag(canvas, x(from), x(to), true);
  key(canvas, 'f');
}

describe('the picture', () => {
  test('has the names of functions and threads, for which there is room', () => {
    const threads = ['MainThread', 'worker 2 · pid 4711 · another machine'];
    const store = storeOf(CALLS, { threads });
    const { canvas } = open(store);
    expect(drawn).toEqual(expect.arrayContaining(['bessel', 'lookup', '✕ bessel', ...threads]));
    const names = 6 * threads[1]!.length + 16;
    click(canvas, names + 0.25 * (WIDTH - names - 8), 60);
    expect(store.selected).toBe(1);
  });

  test('reaches to the present in a running cell, and back to calls that began before the first', () => {
    const store = storeOf([]);
    const { canvas } = open(store);
    store.nowNs = 3e9;
    store.grown();
    expect(draw()).toEqual(expect.arrayContaining(['0', '1.5 s', '3.0 s']));
    store.calls.append(columns([{ start: 0, duration: 1e9 }]), -1e9);
    store.grown();
    draw();
    click(canvas, x(-0.9e9, -0.75e9, 3.75e9) + 60, 34);
    expect(store.selected).toBe(0);
  });

  test('follows new calls unless the user has zoomed', () => {
    const store = storeOf(CALLS);
    const { canvas } = open(store);
    const more = columns([{ start: 0, duration: 1000, variant: 1, thread: 1 }]);
    store.calls.append(more, 1000);
    store.grown();
    expect(draw().filter(text => text.startsWith('lo'))).toHaveLength(3);
    zoomTo(canvas, 0, 50);
    store.calls.append(more, 2000);
    store.grown();
    expect(functions()).toEqual(['bessel']);
  });

  test('dims calls that do not pass the filter', () => {
    const store = storeOf(CALLS);
    open(store);
    store.narrow({ ...EVERYTHING, site: 0 });
    expect(functions()).toEqual(['bessel']);
  });

  test('marks failed calls, even when zoomed out, and calls that returned NaN or infinity', () => {
    const store = storeOf(many(), { notFinite: new Map([[0, true], [9_000, false]]) });
    const { canvas } = open(store);
    const marks = (name: string) => (store.grown(), draw().filter(each => each === name).length);
    expect([marks('moveTo'), marks('closePath')]).toEqual([2, 2]);
    store.calls.append(columns([{ start: 100, error: 1 }, { start: 120, error: 1 }]), 4e5);
    expect([marks('moveTo'), marks('closePath')]).toEqual([4, 2]);
    expect(canvas.getAttribute('aria-label')).toBe(
      'Timeline of 20,002 calls on 1 thread in 400 µs, 2 failed, 2 NaN or infinity'
    );
  });

  test('has outlines around crossings, behind their calls and on the outer call, and explains them', () => {
    const inner = [300, 600].map(start => ({ start, duration: 200, variant: 1, crossing: 2 }));
    const store = storeOf([{ start: 0, duration: 1000, crossing: 1 }, ...inner]);
    const legend = open(store).find('.jaxcb-timeline-crossing');
    const parts = (): string[] => drawn.filter(each => /^(bessel|lookup|strokeRect)$/.test(each));
    expect(parts()).toEqual(['bessel', 'strokeRect', 'strokeRect', 'lookup', 'lookup']);
    store.narrow({ ...EVERYTHING, site: 1 });
    draw();
    expect(parts()).toEqual(['strokeRect', 'strokeRect', 'lookup', 'lookup']);
    expect([legend.hidden, legend.querySelector('abbr')!.title.slice(0, 23)]).toEqual([
      false, 'Crossing: One round tri'
    ]);
    expect(open(storeOf(CALLS)).find('.jaxcb-timeline-crossing').hidden).toBe(true);
  });

  test('has compilations on a band above the threads, and their times below the pointer', () => {
    const compilations = [
      { program: 'jit_f', lower_ns: 100, compile_ns: 900, start_ns: -2000 },
      { program: 'jit_g', lower_ns: 20, compile_ns: 100, start_ns: -130 }
    ];
    const store = storeOf(CALLS, { compilations });
    const { canvas, details } = open(store);
    expect(drawn).toEqual(expect.arrayContaining(['compilation', 'jit_g', 'MainThread']));
    expect(drawn).not.toContain('jit_f'); // too long ago: the calls would be too small to see
    expect(canvas.getAttribute('aria-label')).toMatch(/1 failed, 2 compilations$/);
    key(canvas, '0');
    expect(draw()).toContain('jit_f');
    pointer(canvas, 'pointermove', x(-1500, -2000, 3000), 36);
    expect([details.hidden, details.textContent]).toEqual([
      false, 'jit_fstart2 µs before the first calllowered100 nscompiled900 ns'
    ]);
    pointer(canvas, 'pointermove', x(-500, -2000, 3000), 36);
    expect(details.hidden).toBe(true);
    click(canvas, x(250, -2000, 3000), 82);
    expect(store.selected).toBe(1);
  });

  test('is drawn once per frame, again when the theme changes, and not after disposal', async () => {
    const store = storeOf(CALLS);
    const { timeline } = open(store);
    const change = () => (store.grown(), store.select(store.selected === 1 ? 2 : 1));
    change();
    expect(frames).toHaveLength(1);
    draw();
    document.body.setAttribute('data-jp-theme-light', 'false');
    await Promise.resolve();
    expect(frames).toHaveLength(1);
    draw();
    timeline.dispose();
    change();
    document.body.removeAttribute('data-jp-theme-light');
    await Promise.resolve();
    expect(frames).toHaveLength(0);
  });

  test('needs neither calls nor a drawing context', () => {
    vi.spyOn(HTMLCanvasElement.prototype, 'getContext').mockReturnValue(null);
    const { canvas } = open(storeOf([]));
    expect(['n', 'Enter', '+', '0'].map(each => key(canvas, each))).toEqual(Array(4).fill(false));
  });
});

describe('colors', () => {
  const [SITE, SHORT, LONG] = ['rgb(1, 1, 1)', 'rgb(2, 2, 2)', 'rgb(3, 3, 3)'];

  test('are by site or by duration, with a legend that is scaled to the calls shown', () => {
    const calls = [100, 700, 700, 900_000].map((duration, n) => ({ start: 1_000 * n, duration }));
    const store = storeOf(calls);
    const { canvas, find } = open(store);
    const colours = [['site', SITE], ['duration', SHORT], ['duration', LONG]];
    colours.forEach(([name, colour], n) =>
      canvas.style.setProperty(`--jaxcb-${name}-${[0, 0, 6][n]}`, colour!)
    );
    const legend = find('.jaxcb-timeline-ramp');
    const bars = () => (draw(), new Set(fills.filter(each => each.startsWith('rgb'))));
    const button = (by: string) => find(`[aria-label="Color by ${by}"]`);
    button('site').click();
    expect([bars(), legend.hidden]).toEqual([new Set([SITE]), true]);
    button('duration').click();
    expect([bars().has(LONG!), legend.hidden, legend.textContent]).toEqual([true, false, '100 ns900 µs']);
    expect([button('site').ariaPressed, button('duration').ariaPressed]).toEqual(['false', 'true']);
    store.select(0);
    ['Enter', '-', '-', '-'].forEach(each => key(canvas, each));
    expect([bars(), legend.textContent]).toEqual([new Set([SHORT, LONG]), '100 ns700 ns']);
    expect(legend.querySelectorAll<HTMLElement>('[title]')[1]!.title).toBe('132 ns – 174 ns');
    store.narrow({ ...EVERYTHING, durations: [600, 1_000] });
    bars();
    expect(legend.textContent).toBe('700 ns700 ns');
  });

  test('and the range shown are those that an earlier timeline of the cell showed', () => {
    const store = storeOf(CALLS);
    const { canvas, find } = open(store);
    key(canvas, '+');
    find('[aria-label="Color by duration"]').click();
    draw();
    const zoom = [...store.layout.zoom!];
    expect(zoom[1]! - zoom[0]!).toBeCloseTo(600);
    const next = storeOf(CALLS);
    next.layout = { ...store.layout };
    const again = open(next);
    expect(next.layout.zoom).toEqual(zoom);
    expect(again.find('[aria-pressed=true]').textContent).toBe('duration');
  });
});

describe('the pointer', () => {
  test('selects a call by a click, of several near ones the failed one, and nothing on an empty area', () => {
    const store = storeOf(CALLS);
    const { canvas } = open(store);
    click(canvas, x(250), 60);
    expect(store.selected).toBe(1);
    click(canvas, x(250), 34);
    expect(store.selected).toBeNull();
    const dense = storeOf(many(10_000));
    click(open(dense).canvas, x(500) + 2, 36);
    expect(dense.selected).toBe(10_000);
  });

  test('shows all details of a call, as plain text, and how many share its pixel', () => {
    const { canvas, details } = open(storeOf(CALLS, { sites: ['<b>f</b>, line 3', 'g, line 4'] }));
    const outlines = () => draw().filter(each => each === 'strokeRect').length;
    pointer(canvas, 'pointermove', x(450), 36);
    expect(outlines()).toBe(3); // of the failed call, and two lines below the pointer
    expect([details.hidden, details.textContent, details.querySelector('b')]).toEqual([
      false,
      '<b>f</b>, line 3 call 3start0.4 µsduration100 nsshapes(3,) → ()threadMainThread' +
        '✕ ValueError: no luck',
      null
    ]);
    canvas.dispatchEvent(new MouseEvent('pointerleave'));
    expect(details.hidden).toBe(true);
    const dense = open(storeOf(many()));
    pointer(dense.canvas, 'pointermove', 500, 36);
    expect(dense.details.textContent).toMatch(/2\d calls in this pixel$/);
  });

  test('shows the crossing of a call, whichever threads its calls are on', () => {
    const calls = [0, 300, 600].map((start, n) => ({ start, duration: 100, thread: n % 2, crossing: 4 }));
    const { canvas, details } = open(storeOf([...calls, { start: 900, duration: 100, crossing: 5 }]));
    pointer(canvas, 'pointermove', x(50), 36);
    expect(details.textContent).toContain('crossing3 calls in 700 ns');
    pointer(canvas, 'pointermove', x(950), 36);
    expect(details.textContent).not.toContain('crossing');
  });

  test('pans by a drag, without selecting, and a double click zooms out', () => {
    const store = storeOf(CALLS);
    const { canvas } = open(store);
    zoomTo(canvas, 0, 150);
    expect(functions()).toEqual(['bessel']);
    drag(canvas, x(900), x(100), false);
    expect([functions().includes('lookup'), store.selected]).toEqual([true, null]);
    canvas.dispatchEvent(new MouseEvent('dblclick'));
    expect(functions()).toHaveLength(3);
  });

  test('scrolls the page with the wheel unless Ctrl is pressed or the canvas has the focus', () => {
    const { canvas } = open(storeOf(CALLS));
    expect([wheel(canvas, {}), wheel(canvas, { ctrlKey: true })]).toEqual([true, false]);
    canvas.focus();
    expect(wheel(canvas, {})).toBe(false);
  });

  test('marks a range by a drag with Shift or on the axis, backwards too; a click there removes it', () => {
    const { canvas, range } = open(storeOf(CALLS));
    drag(canvas, x(250), x(950), true);
    expect(range()).toBe('700 ns: 3 calls · sum 200 ns · median 100 ns · ✕ 1 failed');
    pointer(canvas, 'pointerdown', x(300), 5);
    pointer(canvas, 'pointermove', x(-50), 90);
    expect(range()).toBe('300 ns: 2 calls · sum 200 ns · median 100 ns');
    pointer(canvas, 'pointerup', x(-50), 90);
    click(canvas, x(700), 5);
    expect(range()).toBe('');
  });

  test('makes lanes taller by a drag of the edge below them, and so do its keys', () => {
    const store = storeOf(CALLS);
    const { canvas, find } = open(store);
    const grip = find('[role=separator]');
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
    grip.dispatchEvent(new MouseEvent('dblclick'));
    expect([store.layout.height, key(grip, 'Tab')]).toEqual([null, true]);
  });
});

describe('keys', () => {
  test('select the next or previous call that passes the filter', () => {
    const store = storeOf(CALLS);
    const { canvas } = open(store);
    store.narrow({ ...EVERYTHING, site: 1 });
    const selected = [']', 'n', 'n', '[', 'p', 'Escape'].map(each => (key(canvas, each), store.selected));
    expect(selected).toEqual([1, 3, 3, 1, 1, null]);
  });

  test('zoom, pan and reset the window; the pointer keeps its time', () => {
    const store = storeOf(CALLS);
    const { canvas } = open(store);
    const zoom = (name: string) => (key(canvas, name), draw(), store.layout.zoom?.map(Math.round));
    pointer(canvas, 'pointermove', x(200), 36);
    expect(['w', 'w', 'd', 'a', 's'].map(zoom)).toEqual([
      [80, 680], [128, 488], [182, 542], [128, 488], [80, 680]
    ]);
    const ends = [[400, 1000], [0, 600], [120, 480], undefined];
    expect(['End', 'Home', '+', '0'].map(zoom)).toEqual(ends);
  });

  test('that have no meaning, or are pressed with Ctrl, are left to others', () => {
    const { canvas } = open(storeOf(CALLS));
    expect(['Tab', 'x', 'F5'].map(each => key(canvas, each))).toEqual([true, true, true]);
    expect([key(canvas, '0', { ctrlKey: true }), key(canvas, '0')]).toEqual([true, false]);
  });

  test('Enter selects a call near the middle, then zooms in on it', () => {
    const store = storeOf(CALLS);
    const { canvas } = open(store);
    key(canvas, 'Enter');
    expect(store.selected).toBe(3);
    key(canvas, 'Enter');
    expect(functions()).toEqual(['lookup']);
  });

  test('M marks what is shown, and the range keeps its time when the user zooms out', () => {
    const { canvas, range } = open(storeOf(CALLS));
    zoomTo(canvas, 350, 550);
    ['Escape', 'm', '0'].forEach(each => key(canvas, each));
    expect(range()).toBe('200 ns: 1 call · sum 100 ns · median 100 ns · ✕ 1 failed');
    key(canvas, 'Escape');
    expect(range()).toBe('');
  });

  test('are shown on request only', () => {
    const { canvas, find } = open(storeOf(CALLS));
    const shown = () => [find('.jaxcb-timeline-hint-shown')?.id, find('[aria-controls]').ariaExpanded];
    find('[aria-controls]').click();
    expect(shown()).toEqual([canvas.getAttribute('aria-describedby'), 'true']);
    expect(key(canvas, '?')).toBe(false);
    expect(shown()).toEqual([undefined, 'false']);
  });
});

test('the figures of a range are of the calls that pass the filters, and its buttons work', () => {
  const store = storeOf(CALLS);
  const { canvas, find, range } = open(store);
  drag(canvas, x(0), x(1000), true);
  store.narrow({ ...EVERYTHING, site: 1 });
  expect(range()).toBe('1 µs: 2 calls that pass the filters · sum 200 ns · median 100 ns');
  store.narrow(EVERYTHING);
  drag(canvas, x(190), x(310), true);
  find('.jaxcb-timeline-range button').click();
  expect(functions()).toEqual(['lookup']);
  find('.jaxcb-timeline-range [aria-label]').click();
  expect(range()).toBe('');
});

test('shows, and describes as text, the call that any view selects', () => {
  const store = storeOf(CALLS, { notFinite: new Map([[3, false]]) });
  const { canvas, find } = open(store);
  store.select(2);
  expect(find('.jaxcb-timeline-selected').textContent).toBe(
    'call 3 · bessel, line 3 · 100 ns at 0.4 µs · (3,) → () · MainThread · ✕ ValueError: no luck'
  );
  zoomTo(canvas, 0, 100);
  expect(functions()).toEqual(['bessel']);
  store.select(3);
  expect(functions()).toEqual(['lookup']);
  expect(find('.jaxcb-timeline-selected').textContent).toMatch(/returned NaN or infinity for finite arguments$/);
  store.select(null);
  expect(find('.jaxcb-timeline-selected').textContent).toBe('');
});
