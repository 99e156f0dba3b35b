/** CRC-32 as zlib computes it, to recognize the source of a cell. */

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte;
  for (let bit = 0; bit < 8; bit++) {
    rest = rest & 1 ? (rest >>> 1) ^ 0xedb88320 : rest >>> 1;
  }
  return rest;
});

/** The unsigned CRC-32 of `text` in UTF-8. */
export function crc32(text: string): number {
  let rest = 0xffffffff;
  for (const byte of new TextEncoder().encode(text)) {
    rest = TABLE[(rest ^ byte) & 0xff]! ^ (rest >>> 8);
  }
  return (rest ^ 0xffffffff) >>> 0;
}
