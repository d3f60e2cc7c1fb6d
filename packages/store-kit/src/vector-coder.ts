import type { PayloadCodec } from "@throughline/core";
import { isKeyMissing, isLostPayload, type VectorScope } from "@throughline/core/internal";
import { createPayloadCoder } from "./payload-coder.ts";
import type { KeptVector, NumberedVector } from "./vector-backend.ts";

/** Names the vectors of a session that one model made. */
export interface VectorPlace extends VectorScope {
  /** Names the model. */
  readonly model: string;
  /** States the id of the session whose records the vectors are about. */
  readonly sessionId: string;
}

/** States why a vector does not decode: it never will, or its key is not in the keyring at the moment. */
export type Undecoded = "lost" | "no key";

/** Converts vectors to what a store keeps, and back. A text can be guessed from its vector, so a codec encodes both parts. */
export interface VectorCoder {
  /** Returns the vector to keep. @throws {ThroughlineError} CODEC_FAILED */
  seal(vector: KeptVector, place: VectorPlace): KeptVector;
  /** Returns the code of a kept vector. @throws {ThroughlineError} CODEC_FAILED while the whole keyring is away */
  code(kept: Uint8Array, place: VectorPlace): Uint8Array | Undecoded;
  /** Returns the numbers of a kept vector. @throws {ThroughlineError} CODEC_FAILED while the whole keyring is away */
  numbers(kept: NumberedVector, place: VectorPlace): NumberedVector | Undecoded;
}

const scaleBytes = 8;

/** Creates the coder of a store with this codec; null for a store without one, which keeps vectors as they are. */
export function createVectorCoder(codec: PayloadCodec | undefined): VectorCoder | null {
  if (codec === undefined) return null;
  const coder = createPayloadCoder(codec);
  const ownerOf = ({ namespace, agentId, model, sessionId }: VectorPlace, part: string) =>
    ({ ref: { namespace, agentId, key: "" }, sessionId, id: `${model} ${part}`, part: "vector" }) as const;
  const decoded = (kept: Uint8Array, place: VectorPlace, part: string): Uint8Array | Undecoded => {
    try {
      return coder.decode(kept, ownerOf(place, part));
    } catch (error) {
      // One vector that is damaged, erased or without its key hides no other. Any other failure concerns them all.
      if (isLostPayload(error)) return "lost";
      if (isKeyMissing(error)) return "no key";
      throw error;
    }
  };
  return {
    seal(vector, place) {
      const { scale, values, code } = vector;
      const plain = new Uint8Array(scaleBytes + values.length);
      new DataView(plain.buffer).setFloat64(0, scale, true);
      plain.set(new Uint8Array(values.buffer, values.byteOffset, values.length), scaleBytes);
      const sealed = coder.encode(plain, ownerOf(place, partOf(vector)));
      return {
        ...vector,
        scale: 0,
        values: new Int8Array(sealed.buffer, sealed.byteOffset, sealed.length),
        code: coder.encode(code, ownerOf(place, "code")),
      };
    },
    code: (kept, place) => decoded(kept, place, "code"),
    numbers(kept, place) {
      const { buffer, byteOffset, length } = kept.values;
      const plain = decoded(new Uint8Array(buffer, byteOffset, length), place, partOf(kept));
      if (typeof plain === "string") return plain;
      const scale = new DataView(plain.buffer, plain.byteOffset).getFloat64(0, true);
      return { ...kept, scale, values: new Int8Array(plain.slice(scaleBytes).buffer) };
    },
  };
}

/** The numbers decide the rank of records, so they are bound to these. A code chooses only which numbers are compared. */
function partOf({ firstSeq, lastSeq, part }: Pick<KeptVector, "firstSeq" | "lastSeq" | "part">): string {
  return `${firstSeq}-${lastSeq}.${part}`;
}
