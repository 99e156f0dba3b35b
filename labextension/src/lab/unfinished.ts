/** Replaces live views that no host trace will replace: the kernel ended or the page was reloaded. */

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
