import { readdirSync, readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

const LAB = ['badges.css', 'panel.css'];
const SHARED = ['jaxcb-status', 'jaxcb-tone']; // prefixes for both

function named(text: string, before: string): string[] {
  return text.match(new RegExp(`${before}jaxcb-[a-z0-9-]+`, 'g')) ?? [];
}

/** The classes that occur in the selectors of a style sheet. */
function classes(file: string): Set<string> {
  return new Set(named(readFileSync(`style/${file}`, 'utf8'), '(?<=\\.)'));
}

/** The classes in JupyterLab's sheets, except the shared ones. */
function labClasses(): string[] {
  const names = LAB.flatMap(file => [...classes(file)]);
  return names.filter(name => !SHARED.some(prefix => name.startsWith(prefix)));
}

describe('style sheets', () => {
  it('of the view and of JupyterLab have no classes in common', () => {
    const view = readdirSync('style').filter(file => !LAB.includes(file) && file !== 'lab.css');
    const ofView = new Set(view.flatMap(file => [...classes(file)]));
    expect(labClasses().filter(name => ofView.has(name))).toEqual([]);
  });

  it('of JupyterLab have no rules for elements of a view', () => {
    const files = readdirSync('src/view', { recursive: true, encoding: 'utf8' });
    const sources = files.filter(file => file.endsWith('.ts'));
    const made = sources.flatMap(file => named(readFileSync(`src/view/${file}`, 'utf8'), "(?<=[' ])"));
    expect(labClasses().filter(name => made.includes(name))).toEqual([]);
  });
});
