/** Which lines differ between the code of two runs. */

const MOST_CELLS = 250_000; // of the table of common lines; larger parts count as changed

export interface Change {
  readonly added: boolean; // otherwise removed
  readonly text: string;
}

/** The lines that were removed and added, in order; lines that stayed are left out. */
export function changedLines(before: string, after: string): Change[] {
  const [old, now] = [before.split('\n'), after.split('\n')];
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) {
    start += 1;
  }
  let end = 0;
  const most = Math.min(old.length, now.length) - start;
  while (end < most && old.at(-1 - end) === now.at(-1 - end)) {
    end += 1;
  }
  return between(old.slice(start, old.length - end), now.slice(start, now.length - end));
}

function between(old: readonly string[], now: readonly string[]): Change[] {
  const width = now.length + 1;
  const known = old.length * now.length <= MOST_CELLS;
  // How many lines the rests of both have in common, from each pair of lines on.
  const common = new Uint16Array(known ? (old.length + 1) * width : 0);
  for (let a = old.length - 1; a >= 0 && known; a--) {
    for (let b = now.length - 1; b >= 0; b--) {
      const at = a * width + b;
      common[at] =
        old[a] === now[b] ? common[at + width + 1]! + 1 : Math.max(common[at + width]!, common[at + 1]!);
    }
  }
  const changes: Change[] = [];
  let [a, b] = [0, 0];
  while (a < old.length || b < now.length) {
    const at = a * width + b;
    if (known && a < old.length && b < now.length && old[a] === now[b]) {
      [a, b] = [a + 1, b + 1];
    } else if (a < old.length && (b === now.length || !known || common[at + width]! >= common[at + 1]!)) {
      changes.push({ added: false, text: old[a++]! });
    } else {
      changes.push({ added: true, text: now[b++]! });
    }
  }
  return changes;
}
