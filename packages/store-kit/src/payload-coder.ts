import type { CodecContext, SearchToken } from "@throughline/core/internal";
import type { PayloadCodec, SessionRef } from "@throughline/core";
import { hasErrorCode, ThroughlineError } from "@throughline/core";

/** States where a payload belongs, in the terms of a store. */
export interface PayloadOwner {
  /** States the address of the session in the store. */
  readonly ref: SessionRef;
  /** States the session's id. */
  readonly sessionId: string;
  /** States the record's id, the session's key, or the turn's id, as in `CodecContext`. */
  readonly id: string;
  /** States the type of the payload. */
  readonly part: CodecContext["part"];
}

/** Converts payloads to the bytes that a store keeps and back, through the codec if there is one. */
export interface PayloadCoder {
  /**
   * Returns the bytes to keep.
   * @throws {ThroughlineError} CODEC_FAILED
   */
  encode(plain: string | Uint8Array, owner: PayloadOwner): Uint8Array;
  /**
   * Returns the bytes that were passed to `encode`.
   * @throws {ThroughlineError} CODEC_FAILED
   */
  decode(coded: Uint8Array, owner: PayloadOwner): Uint8Array;
}

/** Returns whether a codec does not decode a payload now. Another copy of the keyring may decode it. */
export function isUndecodedPayload(error: unknown): boolean {
  return hasErrorCode(error, "CODEC_FAILED");
}

/**
 * Creates a coder that always copies, so that the store shares neither the caller's bytes nor a codec's buffer. An
 * error of the codec becomes CODEC_FAILED. A typed error gives it its message and remedy, and its code as `reason`.
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
      throw codecFailed(codec, `could not ${direction} the ${part} of ${id}`, { part, id }, cause);
    }
  };
  return {
    encode: (plain, owner) =>
      run("encode", typeof plain === "string" ? Buffer.from(plain) : Uint8Array.from(plain), owner),
    decode: (coded, owner) => run("decode", Uint8Array.from(coded), owner),
  };
}

/** Returns the tokens that an index of a namespace has in place of words. @throws {ThroughlineError} CODEC_FAILED */
export function codecTokens(codec: PayloadCodec, namespace: string, purpose: "index" | "search"): SearchToken {
  return (word) => {
    const token = tokenOf(codec, word, namespace, purpose);
    // Another sign would end the token in an index, or be a sign of a query.
    if (/^[a-z0-9]+$/.test(token)) return token;
    throw codecFailed(codec, "gave a token of other signs than a to z and digits", { namespace });
  };
}

function tokenOf(codec: PayloadCodec, word: string, namespace: string, purpose: "index" | "search"): string {
  try {
    return codec.searchToken?.(word, namespace, purpose) ?? "";
  } catch (cause) {
    throw codecFailed(codec, "could not make a token of a word", { namespace }, cause);
  }
}

function codecFailed(
  { name }: PayloadCodec,
  what: string,
  details: Readonly<Record<string, string>>,
  cause?: unknown,
): ThroughlineError {
  const said = ThroughlineError.isInstance(cause) ? cause : null;
  const message = `The codec ${name} ${what}.`;
  return new ThroughlineError("CODEC_FAILED", said === null ? message : `${message} ${said.message}`, {
    outcome: "not-applied",
    details: { codec: name, ...details, ...(said === null ? {} : { ...said.details, reason: said.code }) },
    remedy: said?.remedy,
    retryable: said?.retryable,
    cause,
  });
}
