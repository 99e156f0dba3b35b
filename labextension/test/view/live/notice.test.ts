import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { LiveView } from '../../../src/view/live/live.js';
import { offerRestart } from '../../../src/view/restart.js';
import { someProgress } from '../recordings.js';

const TITLE = 'No host call has returned for 30 s. This looks like a deadlock.';
const HANG = { title: TITLE, text: 'f has not returned: a deadlock.', stacks: '    line 3, in f' };
let view: LiveView;

function find<T extends HTMLElement>(selector: string): T {
  return view.node.querySelector<T>(selector)!;
}

beforeEach(() => {
  view = new LiveView();
  document.body.append(view.node);
  view.update(someProgress(), []);
});

afterEach(() => {
  offerRestart(() => null);
  view.dispose();
});

describe('the notice that a cell hangs', () => {
  it('says so, with the reason and the stacks in folded details, until the cell goes on', () => {
    expect(find('.jaxcb-hang').hidden).toBe(true);
    view.tell(HANG);
    expect(find('.jaxcb-hang').hidden).toBe(false);
    expect(find('[role=alert]').textContent).toBe(`⚠ ${TITLE}`);
    expect(find<HTMLDetailsElement>('.jaxcb-hang details').open).toBe(false);
    expect(find('.jaxcb-hang details').textContent).toContain(HANG.text + HANG.stacks);
    view.tell({});
    expect(find('.jaxcb-hang').hidden).toBe(true);
    expect(find('[role=alert]').textContent).toBe('');
  });

  it('has no button where nothing restarts a kernel', () => {
    view.tell(HANG);
    view.update(someProgress(), []);
    expect(find('.jaxcb-hang button').hidden).toBe(true);
  });

  it('has a button that restarts the kernel of its notebook', () => {
    const restart = vi.fn();
    offerRestart(node => (node === find('.jaxcb-hang') ? restart : null));
    view.tell(HANG);
    expect(find('.jaxcb-hang button').hidden).toBe(true); // perhaps not yet in a notebook
    view.update(someProgress(), []);
    expect(find('.jaxcb-hang button').hidden).toBe(false);
    find('.jaxcb-hang button').click();
    expect(restart).toHaveBeenCalledTimes(1);
  });

  it('that is damaged is shown, and what is wrong with it', () => {
    view.tell({ title: 'the cell hangs', stacks: 3 });
    expect(find('.jaxcb-bad').textContent).toBe('✕ the progress is damaged: hang.stacks is 3, not text.');
    expect(find('.jaxcb-hang').textContent).toMatch(/^⚠ the cell hangs.*\?$/);
  });
});
