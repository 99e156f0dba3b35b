import { readdirSync, readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import { kindColour } from '../../src/view/colours.js';
import documents from '../../src/view/data/parse/documents.json';
import type { KindId } from '../../src/view/data/schema.js';

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

/** The relative luminance of a color, as WCAG defines it. */
function luminance(colour: string): number {
  const parts = [1, 3, 5].map(from => parseInt(colour.slice(from, from + 2), 16) / 255);
  const [red, green, blue] = parts.map(each =>
    each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4
  );
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
}

describe('the colors of kinds', () => {
  const kinds = documents.KindId.enum as KindId[];
  const blocks = readFileSync('style/profile.css', 'utf8').split('--jaxcb-kind-ink').slice(0, 3);

  it.each([
    ['light', blocks[0]!, '#ffffff'],
    ['dark', blocks[1]!, '#111418'],
    ["the system's dark", blocks[2]!, '#111418']
  ])('are visible on the background, and readable with text in its color: %s', (_, block, back) => {
    for (const kind of kinds) {
      const name = kindColour(kind).slice(2);
      const found = new RegExp(`--${name}: (#[0-9a-f]{6});`).exec(block);
      expect(found, name).not.toBeNull();
      const [dark, light] = [luminance(found![1]!), luminance(back)].sort((one, two) => one - two);
      expect((light! + 0.05) / (dark! + 0.05), name).toBeGreaterThan(4.5);
    }
  });

  it('are the same in both dark themes', () => {
    const [one, other] = blocks.slice(1).map(block => block.match(/--jaxcb-kind-\w+: #\w+/g));
    expect(one).toHaveLength(kinds.length);
    expect(one!.map(each => each.trim())).toEqual(other!.filter(each => !each.includes('ink')));
  });
});
