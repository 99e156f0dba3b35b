/** Shows recordings in outputs, also in notebooks without a kernel. */

import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import type { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import { MIME_TYPE } from '../view/data/schema.js';
import { remember, remembered } from '../view/remembered.js';
import { TraceView } from '../view/view.js';
import { surroundings, type Output } from './around.js';

class RecordingRenderer extends Widget implements IRenderMime.IRenderer {
  private readonly view: TraceView;
  private model: IRenderMime.IMimeModel | null = null;

  constructor() {
    super();
    this.addClass('jaxcb-output');
    this.view = new TraceView({
      reveal: target => surroundings()?.reveal(this.output, target),
      remembers: true,
      everything: async id => surroundings()?.everything(this.output, id) ?? null
    });
    this.node.append(this.view.node);
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    this.model = model;
    this.view.show(model.data[MIME_TYPE], model.metadata[MIME_TYPE]);
  }

  private get output(): Output {
    return { node: this.node, model: this.model };
  }

  protected override onAfterAttach(_: Message): void {
    const look = remembered(this.view.node);
    if (look) {
      this.view.restore(look);
    }
  }

  protected override onBeforeDetach(_: Message): void {
    remember(this.view.node, this.view.look);
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this.view.dispose();
    }
    super.dispose();
  }
}

const extension: IRenderMime.IExtension = {
  id: 'jupyter-jaxcb:recording',
  description: 'Shows recordings of JAX callbacks in outputs.',
  rendererFactory: {
    safe: true,
    mimeTypes: [MIME_TYPE],
    createRenderer: () => new RecordingRenderer()
  },
  rank: -10, // preferred to the widget of the same output, which needs a kernel
  dataType: 'json'
};

export default extension;
