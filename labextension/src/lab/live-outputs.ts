/** Replaces or removes the outputs of live views: of a kernel that ended, and of a cell that ended. */

import type { ICodeCellModel } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';

const LIVE = 'jupyter_jaxcb_live'; // as in _live.py
const TEXT =
  'jupyter_jaxcb: the kernel ended, or the page was reloaded, while the cell was running';
const ENDED = ['restarting', 'autorestarting', 'terminating', 'dead'];

/** Watches the kernels of a notebook, from when the notebook is opened. */
export function replaceUnfinished(panel: NotebookPanel): void {
  const { sessionContext } = panel;
  let opening = true; // an idle kernel does not run the cells that were running when it was saved
  const check = (status: string): void => {
    if (ENDED.includes(status) || (opening && ['idle', 'starting'].includes(status))) {
      opening = false;
      replaceIn(panel);
    }
  };
  sessionContext.statusChanged.connect((_, status) => check(status));
  void Promise.all([panel.context.ready, sessionContext.ready]).then(() =>
    check(sessionContext.session?.kernel?.status ?? 'dead')
  );
}

function replaceIn(panel: NotebookPanel): void {
  for (const cell of panel.content.model?.cells ?? []) {
    if (cell.type === 'code') {
      const { outputs } = cell as ICodeCellModel;
      for (let number = 0; number < outputs.length; number++) {
        if (outputs.get(number).metadata[LIVE]) {
          const data = { 'text/plain': TEXT };
          outputs.set(number, { output_type: 'display_data', data, metadata: {} });
        }
      }
    }
  }
}

/**
 * Removes the empty outputs that live views left in a cell that has ended, and joins the text that
 * the cell printed before and after; not while JupyterLab may add text to the last output.
 */
export function removeEnded({ outputs, sharedModel }: ICodeCellModel): void {
  for (let number = outputs.length - 1; number >= 0; number--) {
    if (outputs.get(outputs.length - 1).type === 'stream') {
      return;
    }
    if (outputs.get(number).metadata[LIVE] === false) {
      const joined = number > 0 && number + 2 < outputs.length && join(outputs, number);
      sharedModel.updateOutputs(number, number + (joined ? 2 : 1), []);
    }
  }
}

/** Adds the text below an output to that above it, if both are of the same stream. */
function join(outputs: ICodeCellModel['outputs'], number: number): boolean {
  const [above, below] = [outputs.get(number - 1), outputs.get(number + 1)];
  const [text, more] = [above.streamText, below.streamText];
  const name = above.toJSON()['name'];
  // Without a new line, the text below may have meant to replace it, as progress bars do.
  if (!text?.text.endsWith('\n') || !more || name !== below.toJSON()['name']) {
    return false;
  }
  text.insert(text.text.length, more.text);
  return true;
}
