import { createHash, timingSafeEqual } from "node:crypto";
import { secretBytes } from "./secret-bytes.ts";

/** The owner keeps the text `tl_ID_SECRET`; the store keeps only the id and the digest. */
export interface NewToken {
  readonly id: string;
  readonly text: string;
  /** Is the SHA-256 of the secret in hex. The store keeps only this, so a leaked store reveals no secret. */
  readonly digest: string;
}

/** The id has 12 letters and digits; the secret encodes 32 random bytes. */
const form = /^tl_([a-z0-9]{12})_([A-Za-z0-9_-]{43})$/;
const alphabet = "abcdefghijklmnopqrstuvwxyz234567";

export function newToken(): NewToken {
  const id = Array.from(secretBytes(12), (byte) => alphabet[byte % 32]).join("");
  const secret = secretBytes(32).toString("base64url");
  return { id, text: `tl_${id}_${secret}`, digest: digestOf(secret) };
}

export function parseToken(text: string): { readonly id: string; readonly digest: string } | null {
  const [, id, secret] = form.exec(text) ?? [];
  return id === undefined || secret === undefined ? null : { id, digest: digestOf(secret) };
}

function digestOf(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

/** Compares in constant time, so that timing does not reveal where the digests differ. */
export function isSameDigest(one: string, other: string): boolean {
  const [left, right] = [Buffer.from(one, "hex"), Buffer.from(other, "hex")];
  return left.length === right.length && timingSafeEqual(left, right);
}

/** Is compared for an unknown id, so that the check takes as long as for a wrong secret. */
export const noDigest: string = digestOf(secretBytes(32).toString("base64url"));
