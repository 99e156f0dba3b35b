/** Empties the document, which all test files share (see vitest.config.ts). */

document.head.replaceChildren();
document.body.replaceChildren();
for (const name of document.body.getAttributeNames()) {
  document.body.removeAttribute(name);
}
