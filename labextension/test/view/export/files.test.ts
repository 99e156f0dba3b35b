/** What the exported files say. */

import { describe, expect, it } from 'vitest';

import { toJson } from '../../../src/view/export/json.js';
import { toMarkdown } from '../../../src/view/export/markdown.js';
import type { RawCalls } from '../../../src/view/data/raw.js';
import { aSite, aVariant, someCalls, someFacts, someMeasured, unusedSite } from '../recordings.js';

const facts = someFacts([unusedSite(), aSite({ shapes: [aVariant([[3], []], [[5]])] })]);
const measured = someMeasured({ threads: ['MainThread'], environment: { jax: '0.10.2' } });

/** The text of a file; jsdom's blobs have no `text()`. */
function textOf(pieces: BlobPart[]): Promise<string> {
  return new Promise(resolve => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.readAsText(new Blob(pieces));
  });
}

/** The JSON of `raw`. */
async function written(raw: RawCalls, more = measured): Promise<any> {
  return JSON.parse(await textOf(await toJson(facts, more, raw)));
}

describe('JSON', () => {
  it('has the call sites, and each call with names instead of numbers', async () => {
    const raw = someCalls(2);
    raw.data.setUint16(16 * 2 + 2, 1, true); // the second call failed
    const read = await written(raw, { ...measured, errors: ['ValueError: "no", luck'] });
    expect(read).toMatchObject({ schema: 1, environment: { jax: '0.10.2' } });
    expect(facts.sites).toEqual(read.sites);
    const first = {
      start_ns: 100,
      duration_ns: 100,
      element: '0',
      crossing: null,
      thread: 'MainThread',
      error: '',
      function: 'bessel',
      flavor: 'pure',
      where: 'line 4',
      operands: 'float32[3] float32[]',
      results: 'float32[5]'
    };
    const second = { ...first, start_ns: 200, error: 'ValueError: "no", luck' };
    expect(read.calls).toEqual([first, second]);
  });

  it('has the crossings of calls that are known', async () => {
    const crossings = new DataView(new ArrayBuffer(8));
    crossings.setUint32(4, 3, true);
    const { calls } = await written({ ...someCalls(2), crossings });
    expect(calls.map((call: { crossing: number }) => call.crossing)).toEqual([0, 3]);
  });

  it('of no calls is valid', async () => {
    expect((await written(someCalls(0))).calls).toEqual([]);
  });

  it('of many calls is formatted in pieces, between which the page reacts', async () => {
    let turns = 0;
    const timer = setInterval(() => (turns += 1));
    const pieces = await toJson(facts, measured, someCalls(20_000));
    clearInterval(timer);
    expect(JSON.parse(await textOf(pieces)).calls).toHaveLength(20_000);
    expect(turns).toBeGreaterThan(2);
  });
});

describe('Markdown', () => {
  it('has the summary line, a table of call sites, and their reasons', () => {
    const [unused, called] = facts.sites;
    const sites = [{ ...unused!, host_ns: 0 }, { ...called!, host_ns: 41_000 }];
    expect(toMarkdown({ ...facts, sites }, measured, 'jax 0.10.2 · cpu').split('\n')).toEqual([
      'bessel · 41 µs',
      '',
      '| where | source | status | calls | shapes of one call | host time |',
      '| --- | --- | --- | --- | --- | --- |',
      '| line 3 | `return bessel(1, x)` | ⚠ unused | 0 calls |  |  |',
      '| line 4 | `return bessel(1, x)` | ● | 1 call | `(3,), () → (5,)` | 41 µs |',
      '',
      '* line 3: nothing uses its result; return or use the result',
      '',
      'jax 0.10.2 · cpu',
      ''
    ]);
  });

  it('has no column of times that are unknown', () => {
    expect(toMarkdown(facts, measured, '')).not.toContain('host time');
  });

  it('has no markup from names, lines of code and errors', () => {
    const site = aSite({
      function: '<b>*f*</b>',
      where: '[x](y)|',
      source: 'a | b `c` ```d',
      errors: ['</code>\n| <img> `']
    });
    const text = toMarkdown(someFacts([site], { headline: [['kept', '<b>*f*</b>']] }), measured, '');
    expect(text).toContain('\\<b\\>\\*f\\*\\</b\\>');
    expect(text).toContain('| \\[x\\](y)\\| | ```` a \\| b `c` ```d ```` |');
    expect(text).toContain('✕ `</code>`');
  });

  it('has escapes for what a terminal obeys and for what nobody sees, and no links', () => {
    const hostile = '\x1b[2J\u202e\u200b\u{e0041}\ud800\x9b http://e.vil www.e.vil a@e.vil $x$ &lt;';
    const site = aSite({ function: hostile, where: hostile, source: `${hostile}\\|<b>`, errors: [hostile] });
    const text = toMarkdown(someFacts([site], { headline: [['kept', hostile]] }), measured, hostile);
    expect(text).not.toMatch(/[^\P{C}\n]/u);
    expect(text).toContain(
      String.raw`\\x1b\[2J\\u202e\\u200b\\U000e0041\\ud800\\x9b http\://e.vil www\.e.vil a\@e.vil \$x\$ \&lt;`
    );
    expect(text).toContain(String.raw`\ \|<b>`);
  });

  it('keeps ordinary characters of every language', () => {
    const words = 'Größe 測定 Ψ∈ℝ می‌خواهم 👩‍🔬❤️';
    expect(toMarkdown(someFacts([aSite({ source: words })]), measured, '')).toContain(`\`${words}\``);
  });

  it('escapes a bar in the table only: elsewhere a code span would show the backslash', () => {
    const site = aSite({ source: 'a | b', errors: ['KeyError: a | b'] });
    const text = toMarkdown(someFacts([site]), measured, '');
    expect(text).toContain('| `a \\| b` |');
    expect(text).toContain('✕ `KeyError: a | b`');
  });
});
