/** Shows the JSON of the walking skeleton (jupyter_jaxcb/skeleton) in outputs. */

import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Widget } from '@lumino/widgets';
import { table } from '../skeleton/table.js';

const MIME_TYPE = 'application/vnd.jupyter-jaxcb.view+json';

class ViewRenderer extends Widget implements IRenderMime.IRenderer {
  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    this.node.replaceChildren(table(model.data[MIME_TYPE] as object, (model.metadata[MIME_TYPE] ?? {}) as object));
  }
}

export const views: IRenderMime.IExtension = {
  id: 'jupyter-jaxcb:view',
  description: 'Shows recordings of JAX callbacks in outputs, in the form that follows.',
  rendererFactory: {
    safe: true,
    mimeTypes: [MIME_TYPE],
    createRenderer: () => new ViewRenderer()
  },
  rank: -10,
  dataType: 'json'
};
