import { createHmac, timingSafeEqual } from "node:crypto";
import { refused } from "@throughline/core/internal";

/** Authenticates the cursors of lists, so that a client cannot forge a cursor or use it with another query or view. */
export interface CursorSeal {
  /** Authenticates the cursor together with `bound`, the query and view that it belongs to. */
  seal(cursor: string, bound: string): string;
  /** @throws {ThroughlineError} CURSOR_INVALID */
  open(sealed: string, bound: string): string;
}

const tagBytes = 16;

/** @param key 32 bytes that all nodes of a service share, so that each node accepts the cursors of the others */
export function createCursorSeal(key: Uint8Array): CursorSeal {
  const tagOf = (cursor: string, bound: string): Buffer =>
    createHmac("sha256", key)
      .update(JSON.stringify([cursor, bound]))
      .digest()
      .subarray(0, tagBytes);
  return {
    seal: (cursor, bound) => Buffer.concat([tagOf(cursor, bound), Buffer.from(cursor)]).toString("base64url"),
    open(sealed, bound) {
      const bytes = Buffer.from(sealed, "base64url");
      const cursor = bytes.subarray(tagBytes).toString();
      const isWhole = bytes.length > tagBytes && bytes.toString("base64url") === sealed;
      if (isWhole && timingSafeEqual(bytes.subarray(0, tagBytes), tagOf(cursor, bound))) return cursor;
      throw refused("CURSOR_INVALID", "The cursor belongs to another query, or was not made by this service.");
    },
  };
}
