/** Texts about where the wall time went. */

import type { Profile, ProfileKind, ProfilePart } from '../data/schema.js';
import { joined, shareWords, timeWords } from '../data/words.js';

/** `82 %`: of the wall time. */
export function wallShare({ wall_ns }: Profile, ns: number): string {
  return shareWords(wall_ns > 0 ? ns / wall_ns : 0);
}

/** `host functions · 1.07 s · 82 %`. */
export function kindWords(profile: Profile, { name, wall_ns }: ProfileKind): string {
  return joined([name, timeWords(wall_ns), wallShare(profile, wall_ns)]);
}

/** `simulate`; the name of its kind if a part has none. */
export function partName({ kinds }: Profile, { name, kind }: ProfilePart): string {
  return name || kinds[kind]!.name;
}

/** `1.3 s wall time, 82 % host functions`: the short headline, of the longest kind. */
export function wallClause(profile: Profile): string {
  const words = `${timeWords(profile.wall_ns)} wall time`;
  const [longest] = [...profile.kinds].sort((a, b) => b.wall_ns - a.wall_ns);
  return longest ? `${words}, ${wallShare(profile, longest.wall_ns)} ${longest.name}` : words;
}
