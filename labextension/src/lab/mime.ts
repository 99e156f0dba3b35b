/** Shows recordings in outputs, also in notebooks without a kernel. */

import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import type { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import { MIME_TYPE } from '../view/data/schema.js';
import { handedOver, handOver, remember, remembered } from '../view/remembered.js';
import { TraceView, type Around } from '../view/view.js';
import { surroundings, views } from './around.js';
import { outputs } from './outputs.js';

let tabs = 0; // that were opened, for their ids

class RecordingRenderer extends Widget implements IRenderMime.IRenderer {
  private readonly view: TraceView;
  private model: IRenderMime.IMimeModel | null = null;

  constructor(private readonly inTab = false) {
    super();
    this.addClass(inTab ? 'jaxcb-tab-output' : 'jaxcb-output');
    this.view = new TraceView(() => this.around());
    this.node.append(this.view.node);
    views.set(this.view.node, this.view);
    if (!inTab) {
      window.addEventListener('pagehide', this.leave);
    }
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    this.model = model;
    this.view.show(model.data[MIME_TYPE], model.metadata[MIME_TYPE]);
    if (this.inTab) {
      this.view.expand();
    }
  }

  /** What JupyterLab offers to the view; Voila lacks its plugin, and offers nothing. */
  private around(): Around {
    const services = surroundings()?.({ node: this.node, model: this.model });
    const openTab = (): void => services!.openTab(this.copy());
    return services ? { ...services, openTab: this.inTab ? undefined : openTab, remembers: !this.inTab } : {};
  }

  /** The same recording for a tab, which does not change when the cell runs again. */
  private copy(): RecordingRenderer {
    const copy = new RecordingRenderer(true);
    copy.id = `jaxcb-trace-${++tabs}`;
    copy.title.label = 'Host trace';
    copy.title.closable = true;
    void copy.renderModel(this.model!);
    return copy;
  }

  protected override onAfterAttach(_: Message): void {
    const { node } = this.view;
    const look = this.inTab ? null : remembered(node) ?? this.ofCell(cell => handedOver(cell, node));
    if (look) {
      this.view.restore(look);
    }
  }

  // Also views that are scrolled out of sight, and so not in the page.
  private readonly leave = (): void => {
    const { node, look } = this.view;
    this.ofCell(cell => handOver(cell, node, look));
  };

  private ofCell<T>(act: (cell: string) => T): T | null {
    const cell = surroundings()?.({ node: this.node, model: this.model }).cell();
    return cell ? act(cell) : null;
  }

  protected override onBeforeDetach(_: Message): void {
    if (!this.inTab) {
      remember(this.view.node, this.view.look);
    }
  }

  override dispose(): void {
    if (!this.isDisposed) {
      window.removeEventListener('pagehide', this.leave);
      this.view.dispose();
    }
    super.dispose();
  }
}

const recordings: IRenderMime.IExtension = {
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

export default [recordings, outputs];
