/** What a payload belongs to. A codec must refuse to decode a payload that was moved to another place. */
export interface CodecContext {
  readonly namespace: string;
  readonly agentId: string;
  readonly sessionId: string;
  /** The record's id; for an entry the session's key; for a partial the id of its turn. */
  readonly id: string;
  readonly part: "record" | "source" | "entry" | "blob" | "partial";
}

/**
 * Encryption or compression of what a store keeps. The columns that a store needs stay plain: seq, id, parentId, type,
 * side, tsMs, storedAtMs, bytes, crc, and a session's address and head. Synchronous: keys are at hand before the store
 * is opened.
 */
export interface PayloadCodec {
  /** Named in the store, so that a wrong codec is refused and not tried. */
  readonly name: string;
  encode(plain: Uint8Array, context: CodecContext): Uint8Array;
  decode(coded: Uint8Array, context: CodecContext): Uint8Array;
}
