/** States where a payload belongs. A codec must refuse to decode a payload that was moved to another location. */
export interface CodecContext {
  /** States the namespace of the session; empty for the default namespace. */
  readonly namespace: string;
  /** Names the agent of the session. */
  readonly agentId: string;
  /**
   * States the id of the session, which a rename keeps. It is empty for a file, which belongs to no session, and for a
   * call of the gateway whose session is not known yet.
   */
  readonly sessionId: string;
  /**
   * States the record's id. For an entry it is the session's key, and for a partial the id of its turn. For a chunk of a
   * file it is the id of the upload with the number of the chunk. For a call in the gateway's journal it is the id of the
   * call. For a vector it is the model with the records of its text.
   */
  readonly id: string;
  /**
   * States the type of the payload: a record's JSON, the line that the record came from, an entry, a blob, or an open
   * reply. `file` is a chunk of a file, `journal` a call in the gateway's journal, and `vector` the vector of a text.
   */
  readonly part: "record" | "source" | "entry" | "blob" | "partial" | "file" | "journal" | "vector";
}

/**
 * Encrypts or compresses the content that a store keeps. The columns that a store needs stay plain: seq, id, parentId,
 * type, side, tsMs, storedAtMs, bytes, crc, and a session's address and head. The methods are synchronous, because keys
 * are available before the store is opened.
 */
export interface PayloadCodec {
  /** Names the codec in the store, so that the store refuses a wrong codec without trying it. */
  readonly name: string;
  /** Returns the bytes to keep, which must be bound to `context`. */
  encode(plain: Uint8Array, context: CodecContext): Uint8Array;
  /**
   * Returns the original bytes. Throws when the bytes were not encoded with this context. An error with the code
   * PAYLOAD_ALTERED or KEY_DESTROYED means that the bytes never decode: a search skips their record, and fails otherwise.
   */
  decode(coded: Uint8Array, context: CodecContext): Uint8Array;
  /**
   * Returns what an index has in place of a word: letters from a to z and digits, the same for equal words of a
   * namespace. A store with a codec has an index of words only with this function. A search makes no key for a namespace
   * that has none: it returns a token that no index has.
   */
  searchToken?(word: string, namespace: string, purpose?: "index" | "search"): string;
}
