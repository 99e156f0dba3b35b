import { describe, expect, it } from 'vitest';

import { parseMeasured } from '../../../../src/view/data/parse/parse.js';
import type { Profile } from '../../../../src/view/data/schema.js';
import { changed } from '../../recordings.js';
import { aProfile } from '../../profile/profiles.js';

function parsed(profile: unknown): Profile | undefined {
  return parseMeasured({ profile }, []).measured.profile;
}

describe('the profile of parseMeasured', () => {
  it('is read without loss', () => {
    expect(parsed(aProfile())).toEqual(aProfile());
  });

  it('is undefined if the recording has none', () => {
    expect(parseMeasured({}, []).measured.profile).toBeUndefined();
  });

  it('may be of a program without calls', () => {
    expect(parsed(aProfile({ start_ns: null }))?.start_ns).toBeNull();
  });

  it.each([
    ['wall_ns', -1, 'measured.profile.wall_ns is -1, not a finite number of at least 0.'],
    ['wall_ns', 1e300, 'measured.profile.wall_ns is 1e+300, not a time.'],
    ['start_ns', '0', 'measured.profile.start_ns is "0", not a time.'],
    ['headline', undefined, 'measured.profile.headline is missing.'],
    ['advice', [3], 'measured.profile.advice[0] is 3, not text.'],
    ['notes', 'none', 'measured.profile.notes is "none", not a list.'],
    ['kinds.0.id', 'magic', 'measured.profile.kinds[0].id is "magic", not one of host, crossing'],
    ['kinds.0.wall_ns', NaN, 'measured.profile.kinds[0].wall_ns is NaN'],
    ['kinds', Array(12).fill(aProfile().kinds[0]), 'kinds has 12 entries, more than 11.'],
    ['parts.0.kind', 3, 'measured.profile.parts[0].kind is 3, not at most 2.'],
    ['parts.0.busy_ns', Infinity, 'measured.profile.parts[0].busy_ns is Infinity'],
    ['parts.0.count', 0.5, 'measured.profile.parts[0].count is 0.5, not a whole number'],
    ['parts', Array(2001).fill(aProfile().parts[0]), 'parts has 2001 entries, more than 2000.'],
    ['lanes.1.spans', [0, 1], 'lanes[1].spans has 2 entries, which are not triples.'],
    ['lanes.1.spans', [0, 1, 5], 'lanes[1].spans[2] is 5, not at most 4.'],
    ['lanes.1.spans', [-1, 1, 0], 'lanes[1].spans[0] is -1, not a finite number of at least 0.'],
    ['lanes.1.spans', [0, 2e9, 0], 'lanes[1].spans[1] is 2000000000, not within the block'],
    ['lanes.1.spans', [2e9, 0, 0], 'lanes[1].spans[0] is 2000000000, not within the block'],
    ['lanes.1.spans', [5, 5, 0, 7, 5, 1], 'lanes[1].spans[3] is 7, not a start after the span'],
    ['lanes.1.spans', Array(600_000).fill(0), 'holds more than 600,000 values']
  ])('is malformed if its %s is %j', (path, value, message) => {
    expect(() => parsed(changed(aProfile(), path, value))).toThrow(message);
  });

  it('may have spans that overlap by a nanosecond, because times are rounded', () => {
    const lanes = [{ name: 'worker 1', spans: [0, 11, 0, 10, 1e9 - 9, 1] }];
    expect(parsed(aProfile({ lanes }))?.lanes).toEqual(lanes);
  });

  it('has at most 64 lanes, and texts of limited length', () => {
    const lanes = Array(65).fill({ name: 'x'.repeat(1000), spans: [] });
    const read = parsed(aProfile({ lanes, advice: Array(51).fill('y') }))!;
    expect([read.lanes.length, read.advice.length]).toEqual([64, 50]);
    expect(read.lanes[0]!.name).toHaveLength(200);
  });
});
