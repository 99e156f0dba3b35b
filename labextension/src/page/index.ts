/** A recording in a file of its own, see `jupyter_jaxcb/report/export/_page.py`. */

import { TraceView } from '../view/view.js';

const [place, data] = ['jaxcb-page', 'jaxcb-recording'].map(id => document.getElementById(id));
if (!place || !data) {
  throw new Error('this page has no recording: elements of it were removed. Save it again.');
}
const { facts, measured } = JSON.parse(data.textContent) as Record<string, unknown>;
const view = new TraceView();
view.show(facts, measured);
view.expand();
place.replaceChildren(view.node); // instead of the table for readers without scripts
