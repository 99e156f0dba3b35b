/** Clipboard and downloads. */

/** Throws Error if the browser refuses. */
export async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    copyOnOldWay(text); // the page was loaded by plain http, or its frame may not use the clipboard
  }
}

function copyOnOldWay(text: string): void {
  const focused = document.activeElement;
  const field = document.createElement('textarea');
  field.value = text;
  field.style.position = 'fixed'; // does not scroll the page
  document.body.append(field);
  field.focus();
  field.select();
  const copied = document.execCommand('copy');
  field.remove();
  (focused as HTMLElement | null)?.focus();
  if (!copied) {
    throw new Error('the browser refused access to the clipboard. Save a file.');
  }
}

/** Downloads a file. */
export function saveFile(name: string, pieces: BlobPart[], type: string): void {
  const url = URL.createObjectURL(new Blob(pieces, { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  document.body.append(link); // JupyterLab handles clicks on links in outputs
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60_000); // the download may start later
}
