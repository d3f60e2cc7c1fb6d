import type { CodecContext, PayloadCodec, SessionRef } from "@throughline/core";
import { ThroughlineError } from "@throughline/core";

/** What a payload belongs to, as a store knows it. */
export interface PayloadOwner {
  /** Where the store has the session. */
  readonly ref: SessionRef;
  /** The session's id. */
  readonly sessionId: string;
  /** The record's id, the session's key, or the turn's id, as in `CodecContext`. */
  readonly id: string;
  /** What the payload is. */
  readonly part: CodecContext["part"];
}

/** Payloads to the bytes that are kept and back, through the codec if there is one. */
export interface PayloadCoder {
  /** The bytes that are kept. @throws {ThroughlineError} CODEC_FAILED */
  encode(plain: string | Uint8Array, owner: PayloadOwner): Uint8Array;
  /** The bytes as they were given to `encode`. @throws {ThroughlineError} CODEC_FAILED */
  decode(coded: Uint8Array, owner: PayloadOwner): Uint8Array;
}

/**
 * A coder that always copies, so that neither the caller's bytes nor a codec's buffer is shared with the store. What
 * a codec throws becomes CODEC_FAILED.
 */
export function createPayloadCoder(codec: PayloadCodec | undefined): PayloadCoder {
  const run = (
    direction: "encode" | "decode",
    bytes: Uint8Array,
    { ref, sessionId, id, part }: PayloadOwner,
  ): Uint8Array => {
    if (codec === undefined) return bytes;
    try {
      const { namespace, agentId } = ref;
      return Uint8Array.from(codec[direction](bytes, { namespace, agentId, sessionId, id, part }));
    } catch (cause) {
      throw new ThroughlineError(
        "CODEC_FAILED",
        `The codec ${codec.name} could not ${direction} the ${part} of ${id}.`,
        {
          outcome: "not-applied",
          details: { codec: codec.name, part, id },
          cause,
        },
      );
    }
  };
  return {
    encode: (plain, owner) =>
      run("encode", typeof plain === "string" ? Buffer.from(plain) : Uint8Array.from(plain), owner),
    decode: (coded, owner) => run("decode", Uint8Array.from(coded), owner),
  };
}
