/** Sorts a million rows by numbers, with a radix sort on typed arrays. */

const DIGIT_BITS = 16;
const DIGITS = 4; // of a double
const BUCKETS = 1 << DIGIT_BITS;
const SIGN = 0x80000000;

/** Sorts `rows` stably by their keys. */
export function sorted(
  rows: Uint32Array,
  key: (row: number) => number,
  descending: boolean
): Uint32Array<ArrayBuffer> {
  const digits = new Uint16Array(sortable(rows, key, descending).buffer);
  let order = Uint32Array.from(rows, (_, place) => place);
  let spare = new Uint32Array(rows.length);
  for (let digit = 0; digit < DIGITS; digit++) {
    if (pass(digits, digit, order, spare)) {
      [order, spare] = [spare, order];
    }
  }
  return order.map(place => rows[place]!);
}

/** The keys as 64-bit integers of the same order, low half first. */
function sortable(
  rows: Uint32Array,
  key: (row: number) => number,
  descending: boolean
): Uint32Array {
  const bits = new Uint32Array(new Float64Array(rows.length).buffer);
  const keys = new Float64Array(bits.buffer);
  for (let place = 0; place < rows.length; place++) {
    keys[place] = key(rows[place]!) + 0; // no -0, which would come before 0
    const negative = bits[2 * place + 1]! >= SIGN;
    if (negative !== descending) {
      bits[2 * place] = ~bits[2 * place]!;
    }
    const flip = (negative ? 0xffffffff : SIGN) ^ (descending ? 0xffffffff : 0);
    bits[2 * place + 1] = bits[2 * place + 1]! ^ flip;
  }
  return bits;
}

/** Sorts by one digit from one array into the other; false: all have the same digit. */
function pass(digits: Uint16Array, digit: number, from: Uint32Array, to: Uint32Array): boolean {
  const places = new Uint32Array(BUCKETS + 1);
  for (let at = digit; at < digits.length; at += DIGITS) {
    places[digits[at]! + 1]!++;
  }
  if (places.includes(from.length, 1)) {
    return false;
  }
  for (let bucket = 0; bucket < BUCKETS; bucket++) {
    places[bucket + 1]! += places[bucket]!;
  }
  for (let at = 0; at < from.length; at++) {
    const place = from[at]!;
    to[places[digits[DIGITS * place + digit]!]!++] = place;
  }
  return true;
}

/** The rank of each text in natural order (`worker-2` before `worker-10`); equal texts share one. */
export function ranks(texts: readonly string[]): number[] {
  const { compare } = new Intl.Collator('en', { numeric: true });
  const places = new Map([...new Set(texts)].sort(compare).map((text, place) => [text, place]));
  return texts.map(text => places.get(text)!);
}
