// Images and other media inside a prompt. Two schemes are in use; the query side and the
// event side of one deployment must take the same.
import { xxh3_64 } from "./xxh3";

/**
 * Local hash of a block with media: its tokens, then the media hashes as LE u64 in ascending
 * order. `media` is an array of `mediaCount` u64, few, in any order; `scratch` has room for
 * 4 · blockSize + 8 · mediaCount bytes.
 */
export function hashBlockWithMedia(
  tokens: usize, blockSize: u32, media: usize, mediaCount: u32, seed: u64, scratch: usize,
): u64 {
  const first = scratch + (<usize>blockSize << 2);
  memory.copy(scratch, tokens, first - scratch);
  let end = first;
  for (; mediaCount; mediaCount--) {
    const hash = load<u64>(media);
    let at = end;
    for (; at != first && load<u64>(at - 8) > hash; at -= 8) store<u64>(at, load<u64>(at - 8));
    store<u64>(at, hash);
    media += 8;
    end += 8;
  }
  return xxh3_64(scratch, end - scratch, seed);
}

/** The token id that stands for media with this hash where placeholders are normalised. */
export function padToken(mediaHash: u64): u32 {
  return 1_000_000 + (<u32>mediaHash & 0x3fffffff);
}

/**
 * The hash of a media identifier, UTF-8 and not empty: 64 hex digits stand for their first
 * 16, anything else is hashed.
 */
export function mediaId(p: usize, len: u32): u64 {
  if (len != 64) return xxh3_64(p, len, 0);
  let first: u64 = 0;
  for (let i: usize = 0; i < 64; i++) {
    const digit = hexDigit(load<u8>(p + i));
    if (digit > 15) return xxh3_64(p, len, 0);
    if (i < 16) first = (first << 4) | <u64>digit;
  }
  return first;
}

// 16 or more when it is none.
function hexDigit(c: u32): u32 {
  if (c - 0x30 < 10) return c - 0x30;
  const letter = (c | 0x20) - 0x61;
  return letter < 6 ? letter + 10 : 16;
}
