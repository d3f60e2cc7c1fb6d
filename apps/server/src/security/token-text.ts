import { createHash, randomBytes, timingSafeEqual } from "node:crypto";

/** A token as its owner keeps it: `tl_ID_SECRET`. */
export interface NewToken {
  readonly id: string;
  readonly text: string;
  /** SHA-256 of the secret in hex, which is all that a store keeps of it. */
  readonly digest: string;
}

/** 12 letters and digits, then 32 random bytes. */
const form = /^tl_([a-z0-9]{12})_([A-Za-z0-9_-]{43})$/;
const alphabet = "abcdefghijklmnopqrstuvwxyz234567";

export function newToken(): NewToken {
  const id = Array.from(randomBytes(12), (byte) => alphabet[byte % 32]).join("");
  const secret = randomBytes(32).toString("base64url");
  return { id, text: `tl_${id}_${secret}`, digest: digestOf(secret) };
}

/** The id and the digest of a token's text; null for any other text. */
export function parseToken(text: string): { readonly id: string; readonly digest: string } | null {
  const [, id, secret] = form.exec(text) ?? [];
  return id === undefined || secret === undefined ? null : { id, digest: digestOf(secret) };
}

function digestOf(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

/** Compares in a time that says nothing about where they differ. */
export function isSameDigest(one: string, other: string): boolean {
  const [left, right] = [Buffer.from(one, "hex"), Buffer.from(other, "hex")];
  return left.length === right.length && timingSafeEqual(left, right);
}

/** What the secret of an id that nobody has is compared with, so that it takes as long as a wrong one. */
export const noDigest: string = digestOf(randomBytes(32).toString("base64url"));
