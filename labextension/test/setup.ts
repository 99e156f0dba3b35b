/** Files share a document, see vitest.config.ts: each begins with an empty one. */

document.head.replaceChildren();
document.body.replaceChildren();
for (const name of document.body.getAttributeNames()) {
  document.body.removeAttribute(name);
}
