/** What a payload belongs to. A codec must refuse to decode a payload that was moved to another place. */
export interface CodecContext {
  /** The namespace of the session; empty for the default. */
  readonly namespace: string;
  /** The agent of the session. */
  readonly agentId: string;
  /** The id of the session, which a rename keeps. */
  readonly sessionId: string;
  /** The record's id; for an entry the session's key; for a partial the id of its turn. */
  readonly id: string;
  /** What the payload is: a record's JSON, the line it came from, an entry, a blob, or an open reply. */
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
  /** The bytes that are kept. `context` must be bound to them. */
  encode(plain: Uint8Array, context: CodecContext): Uint8Array;
  /** The bytes as they were. Throws where they were not encoded with this context. */
  decode(coded: Uint8Array, context: CodecContext): Uint8Array;
}
