/** The views as an anywidget: the live view of a running cell, or a whole recording. */

import { LiveView } from '../view/live/live.js';
import { TraceView, type RawCalls } from '../view/view.js';
import { followTheme } from './theme.js';

/** The part of anywidget's model that is used here. */
interface Model {
  get(name: string): unknown;
  on(event: string, listener: (...values: any[]) => void): void;
  off(event: string, listener: (...values: any[]) => void): void;
  send(content: unknown): void;
}

interface Rendering {
  model: Model;
  el: HTMLElement;
}

/** Tells the kernel that this page has loaded the widget, which may now be closed at any time. */
function initialize({ model }: { model: Model }): void {
  if (model.get('kind') === 'live') {
    model.send('loaded');
  }
}

function render({ model, el }: Rendering): () => void {
  const leave = followTheme(el);
  const end = model.get('kind') === 'live' ? renderLive(model, el) : renderRecording(model, el);
  return () => {
    leave();
    end();
  };
}

function renderLive(model: Model, el: HTMLElement): () => void {
  const view = new LiveView();
  const update = () => view.update(model.get('progress'), texts(model.get('threads')));
  const append = (header: unknown, buffers: unknown) => {
    const calls = rawCalls(header, Array.isArray(buffers) ? buffers : []);
    if (calls) {
      view.append({ ...calls, base_ns: number((header as { base_ns?: unknown }).base_ns) });
    }
  };
  const tell = () => view.tell(model.get('hang'));
  update();
  tell();
  model.on('change:progress', update);
  model.on('change:hang', tell);
  model.on('msg:custom', append);
  el.append(view.node);
  return () => {
    model.off('change:progress', update);
    model.off('change:hang', tell);
    model.off('msg:custom', append);
    view.dispose();
  };
}

function renderRecording(model: Model, el: HTMLElement): () => void {
  const view = new TraceView();
  const show = () => {
    const header = { rows: model.get('rows'), unit_ns: model.get('unit_ns') };
    const calls = rawCalls(header, [model.get('calls'), model.get('crossings')]);
    view.show(model.get('facts'), model.get('measured'), calls);
  };
  show();
  el.append(view.node);
  return () => view.dispose();
}

/** The received calls, if they are well-formed. */
function rawCalls(header: unknown, [data, crossings]: readonly unknown[]): RawCalls | null {
  const { rows, unit_ns } = (header ?? {}) as { rows?: unknown; unit_ns?: unknown };
  if (!(data instanceof DataView)) {
    return null;
  }
  const known = crossings instanceof DataView && crossings.byteLength > 0;
  return { rows: number(rows), unit_ns: number(unit_ns), data, crossings: known ? crossings : undefined };
}

function number(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}

export default { initialize, render };
