/** The actions of the footer, with the clipboard and downloads replaced. */

import { afterEach, beforeEach, expect, it, vi } from 'vitest';

import { exportActions } from '../../../src/view/export/actions.js';
import { aSite, someCalls, someFacts, someMeasured } from '../recordings.js';

const facts = someFacts([aSite()]);
const measured = someMeasured({ threads: ['MainThread'] });

let copied: string[];

beforeEach(() => {
  copied = [];
  const writeText = async (text: string) => void copied.push(text);
  vi.stubGlobal('navigator', { clipboard: { writeText } });
});

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  vi.useRealTimers();
  document.body.replaceChildren();
});

function shown(rows: number, more = measured) {
  const raw = rows ? someCalls(rows) : null;
  const node = exportActions({ facts, measured: more, raw, environment: 'cpu' });
  document.body.append(node);
  return node;
}

function click(node: HTMLElement, name: string): void {
  node.querySelector<HTMLElement>(`[aria-label="${name}"]`)!.click();
}

/** What the row says about its last action. */
async function said(node: HTMLElement): Promise<string> {
  const status = node.querySelector('[role=status]')!;
  await vi.waitFor(() => expect(status.textContent).not.toBe(''), { timeout: 60_000 });
  return status.textContent!;
}

it('without calls, only the call sites can be copied', async () => {
  const node = shown(0);
  expect([...node.querySelectorAll('button')].map(each => each.ariaLabel)).toEqual([
    'Copy as Markdown'
  ]);
  click(node, 'Copy as Markdown');
  expect(await said(node)).toBe('copied the call sites');
  expect(copied[0]).toContain('| line 4 |');
});

it('text is copied on the old way where the clipboard is refused, and the focus stays', async () => {
  vi.stubGlobal('navigator', {});
  const node = shown(0);
  let selected = '';
  document.execCommand = () => {
    selected = (document.activeElement as HTMLTextAreaElement).value;
    return true;
  };
  const button = node.querySelector('button')!;
  button.focus();
  button.click();
  expect(await said(node)).toBe('copied the call sites');
  expect(selected).toContain('| line 4 |');
  expect(document.activeElement).toBe(button);
  document.execCommand = () => false;
  button.click();
  expect(await said(node)).toContain('refused access to the clipboard');
});

it('Save as JSON downloads the calls, and a button says how to get other formats from them', async () => {
  let saved: Blob | undefined;
  const links: string[] = [];
  vi.stubGlobal('URL', {
    createObjectURL: (blob: Blob) => ((saved = blob), 'blob:x'),
    revokeObjectURL: () => undefined
  });
  vi.spyOn(HTMLAnchorElement.prototype, 'click').mockImplementation(function (this: any) {
    links.push(this.download);
  });
  const node = shown(2);
  click(node, 'Save as JSON');
  expect(await said(node)).toBe('saved 2 calls as host-trace.json');
  expect(JSON.parse(await textOf(saved!)).calls).toHaveLength(2);
  click(node, 'how to get CSV, Parquet, Perfetto');
  await vi.waitFor(() =>
    expect(node.textContent).toContain(`jupyter_jaxcb export ${links[0]} calls.csv`)
  );
});

function textOf(blob: Blob): Promise<string> {
  return new Promise(resolve => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.readAsText(blob);
  });
}

it('Save as JSON says that the file has no crossings if they are damaged', async () => {
  vi.stubGlobal('URL', { createObjectURL: () => 'blob:x', revokeObjectURL: () => undefined });
  vi.spyOn(HTMLAnchorElement.prototype, 'click').mockImplementation(() => undefined);
  const raw = { ...someCalls(2), crossingsProblem: 'The saved crossings are not valid base64.' };
  const node = exportActions({ facts, measured, raw, environment: '' });
  click(node, 'Save as JSON');
  expect(await said(node)).toBe(
    'saved 2 calls as host-trace.json, without crossings: The saved crossings are not valid base64.'
  );
});

it('malformed calls are a message, not an exception', async () => {
  const raw = { ...someCalls(2), rows: 3 };
  const node = exportActions({ facts, measured, raw, environment: '' });
  click(node, 'Save as JSON');
  expect(await said(node)).toBe('✕ 3 calls take 54 bytes, not 36');
  expect(node.querySelector('[role=status]')!.classList).toContain('jaxcb-bad');
});
