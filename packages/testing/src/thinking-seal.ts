import { Buffer } from "node:buffer";
import { createHash, createHmac } from "node:crypto";

export interface Seal {
  /** Identifies the answer in which the block arrived. */
  readonly reply: string;
  /** Holds the position among the thinking blocks of that answer, from 0. `count` is their number. */
  readonly index: number;
  readonly count: number;
  /** Counts the blocks of any kind before this block in the answer. */
  readonly blocksBefore: number;
  readonly text: string;
  readonly prefix: string;
}

export interface ThinkingSeals {
  sign(seal: Seal): string;
  /** Returns null for a signature that no simulator with this key has issued. */
  open(signature: string): Seal | null;
}

/** Hashes the texts with their lengths, so that ["ab", "c"] and ["a", "bc"] differ. */
export function hashTexts(texts: readonly string[]): string {
  const hash = createHash("sha256");
  for (const text of texts) hash.update(`${text.length}:`).update(text);
  return hash.digest("base64url").slice(0, 22);
}

/**
 * A signature carries its seal in authenticated form. A second simulator with the same key can therefore continue a
 * conversation, like another process of a provider.
 */
export function createThinkingSeals(key: string): ThinkingSeals {
  const authenticate = (payload: string): string => createHmac("sha256", key).update(payload).digest("base64url");
  return {
    sign(seal): string {
      const payload = Buffer.from(JSON.stringify(seal)).toString("base64url");
      return Buffer.from(`${payload}.${authenticate(payload)}`).toString("base64");
    },
    open(signature): Seal | null {
      const [payload = "", mark] = Buffer.from(signature, "base64").toString("latin1").split(".");
      if (mark !== authenticate(payload)) return null;
      // The authentication proves that `sign` wrote the payload, so the cast is safe.
      return JSON.parse(Buffer.from(payload, "base64url").toString()) as Seal;
    },
  };
}
