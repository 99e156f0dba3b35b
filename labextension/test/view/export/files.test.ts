/** What the exported files say. */

import { describe, expect, it } from 'vitest';

import { ExportedCalls } from '../../../src/view/export/calls.js';
import { toCsv } from '../../../src/view/export/csv.js';
import { toJson } from '../../../src/view/export/json.js';
import { toMarkdown } from '../../../src/view/export/markdown.js';
import { toPerfetto } from '../../../src/view/export/perfetto.js';
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

/** `rows` calls, the second of which failed with `error`, if given. */
async function calls(rows: number, error = '', more = measured): Promise<ExportedCalls> {
  const raw = someCalls(rows);
  if (error) {
    raw.data.setUint16(16 * rows + 2, 1, true);
  }
  return ExportedCalls.of(facts, { ...more, errors: [error] }, raw);
}

describe('CSV', () => {
  it('has a line for each call, with names instead of numbers', async () => {
    const lines = (await textOf(await toCsv(await calls(2, 'ValueError: "no", luck')))).split('\n');
    expect(lines).toEqual([
      'start_ns,duration_ns,element,thread,error,function,flavor,where,operands,results',
      '100,100,0,MainThread,,bessel,pure,line 4,float32[3] float32[],float32[5]',
      '200,100,0,MainThread,"ValueError: ""no"", luck",bessel,pure,line 4,float32[3] float32[],float32[5]',
      ''
    ]);
  });

  it.each(['=1+1', '+1', '-1', '@SUM(1)', '\t=1', '\r=1'])(
    'has no text that a spreadsheet reads as the formula %j',
    async formula => {
      const text = await textOf(await toCsv(await calls(2, formula)));
      expect(text).toMatch(/MainThread,"?'[=+\-@\t\r]/);
    }
  );

  it('has the first calls only, if asked for', async () => {
    expect((await textOf(await toCsv(await calls(30_000), 20_000))).split('\n')).toHaveLength(20_002);
  });
});

describe('many calls', () => {
  it('are formatted in pieces, between which the page reacts', async () => {
    let turns = 0;
    const timer = setInterval(() => (turns += 1));
    const pieces = await (await calls(20_000)).formatted(() => 'x', '-');
    clearInterval(timer);
    expect(pieces).toHaveLength(4);
    expect(await textOf(pieces)).toBe(Array(20_000).fill('x').join('-'));
    expect(turns).toBeGreaterThan(2);
  });
});

describe('JSON', () => {
  it('has the call sites, and each call with names instead of numbers', async () => {
    const read = JSON.parse(await textOf(await toJson(facts, measured, await calls(2))));
    expect(read).toMatchObject({ schema: 1, environment: { jax: '0.10.2' } });
    expect(facts.sites).toEqual(read.sites);
    expect(read.calls[1]).toMatchObject({ start_ns: 200, function: 'bessel', where: 'line 4' });
    expect(read.calls).toHaveLength(2);
  });

  it('of no calls is valid', async () => {
    expect(JSON.parse(await textOf(await toJson(facts, measured, await calls(0)))).calls).toEqual([]);
  });
});

describe('a trace for Perfetto', () => {
  it('has a slice for each call, in microseconds, on the track of its thread', async () => {
    const read = JSON.parse(await textOf(await toPerfetto(measured, await calls(2, 'no luck'))));
    const [process, thread, ...slices] = read.traceEvents;
    expect(process.args).toEqual({ name: 'host calls' });
    expect(thread).toMatchObject({ name: 'thread_name', args: { name: 'MainThread' } });
    expect(slices[1]).toMatchObject({ ph: 'X', name: 'bessel', ts: 0.2, dur: 0.1, tid: thread.tid });
    expect(slices.map((slice: any) => slice.args.error)).toEqual([undefined, 'no luck']);
  });

  it('of no calls is valid', async () => {
    const read = JSON.parse(await textOf(await toPerfetto(measured, await calls(0))));
    expect(read.traceEvents).toHaveLength(1);
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
});
