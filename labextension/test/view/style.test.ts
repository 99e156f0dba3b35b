import { readdirSync, readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

const LAB = ['badges.css', 'panel.css'];
const SHARED = ['jaxcb-status', 'jaxcb-tone']; // prefixes that are meant for both

function named(text: string, before: string): string[] {
  return text.match(new RegExp(`${before}jaxcb-[a-z0-9-]+`, 'g')) ?? [];
}

/** The classes that a style sheet has rules for. */
function classes(file: string): Set<string> {
  return new Set(named(readFileSync(`style/${file}`, 'utf8'), '(?<=\\.)'));
}

/** Those of JupyterLab's sheets alone. */
function ofLab(): string[] {
  const names = LAB.flatMap(file => [...classes(file)]);
  return names.filter(name => !SHARED.some(prefix => name.startsWith(prefix)));
}

describe('style sheets', () => {
  it('of the view and of JupyterLab never speak of the same elements', () => {
    const view = readdirSync('style').filter(file => !LAB.includes(file) && file !== 'lab.css');
    const ofView = new Set(view.flatMap(file => [...classes(file)]));
    expect(ofLab().filter(name => ofView.has(name))).toEqual([]);
  });

  it('of JupyterLab say nothing of elements that a view makes', () => {
    const files = readdirSync('src/view', { recursive: true, encoding: 'utf8' });
    const sources = files.filter(file => file.endsWith('.ts'));
    const made = sources.flatMap(file => named(readFileSync(`src/view/${file}`, 'utf8'), "(?<=[' ])"));
    expect(ofLab().filter(name => made.includes(name))).toEqual([]);
  });
});
