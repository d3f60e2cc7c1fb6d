import { type CodecContext, refused } from "@throughline/core/internal";
import type { PayloadCodec } from "@throughline/core";

/**
 * Creates a codec for tests, which does not encrypt. It changes every byte with a pad that depends on the position. A
 * tag in front detects a payload that was moved. Stored data contain no plain text, and decoding with another context
 * fails.
 */
export function createXorCodec(): PayloadCodec {
  return {
    name: "xor-for-tests",
    encode: (plain, context) => {
      const seed = seedOf(context);
      const coded = new Uint8Array(plain.byteLength + tagBytes);
      coded.set(tagOf(seed));
      coded.set(xor(plain, seed), tagBytes);
      return coded;
    },
    decode: (coded, context) => {
      const seed = seedOf(context);
      if (!tagOf(seed).every((byte, index) => coded[index] === byte))
        throw refused("PAYLOAD_ALTERED", "The payload belongs to another place.");
      return xor(coded.subarray(tagBytes), seed);
    },
    searchToken: (word, namespace) =>
      `t${seedOf({ namespace, agentId: "", sessionId: "", id: word, part: "record" }).toString(36)}`,
  };
}

const tagBytes = 3;

/** The tag starts with 0xff, because no UTF-8 text starts with it. */
function tagOf(seed: number): readonly number[] {
  return [0xff, seed & 0xff, (seed >>> 8) & 0xff];
}

/** The pad always has the high bit set, so that no ASCII byte stays ASCII. */
function xor(bytes: Uint8Array, seed: number): Uint8Array {
  let pad = seed;
  const changed = new Uint8Array(bytes.byteLength);
  for (let index = 0; index < bytes.byteLength; index++) {
    pad = (Math.imul(pad, 1_664_525) + 1_013_904_223) >>> 0;
    changed[index] = (bytes[index] ?? 0) ^ (0x80 | (pad >>> 24));
  }
  return changed;
}

function seedOf({ namespace, agentId, sessionId, id, part }: CodecContext): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(JSON.stringify([namespace, agentId, sessionId, id, part]))) {
    hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  }
  return hash;
}
