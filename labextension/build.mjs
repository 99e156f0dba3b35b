// Three bundles: the widget and the page of a saved recording, each complete in one file, and the
// JupyterLab extension, whose JupyterLab and CodeMirror parts are the host's.
import { rmSync } from 'node:fs';

import { build } from 'esbuild';

rmSync('lib', { recursive: true, force: true });

const common = { bundle: true, format: 'esm', target: 'es2022', logLevel: 'warning' };

await build({
  ...common,
  entryPoints: { widget: 'src/widget/index.ts' },
  outdir: '../jupyter_jaxcb/static',
  minify: true
});
await build({
  ...common,
  format: 'iife', // stands in a script element
  entryPoints: { page: 'src/page/index.ts' },
  outdir: '../jupyter_jaxcb/static',
  minify: true
});
await build({
  ...common,
  entryPoints: { widget: 'style/view.css', page: 'style/page.css' },
  outdir: '../jupyter_jaxcb/static',
  minify: true
});
await build({
  ...common,
  entryPoints: { index: 'src/lab/index.ts', mime: 'src/lab/mime.ts' },
  outdir: 'lib',
  splitting: true,
  external: ['@jupyterlab/*', '@lumino/*', '@codemirror/*', '@jupyter/*']
});
