import { Buffer } from "node:buffer";
import { createHash, createHmac } from "node:crypto";

/** What a signature binds. */
export interface Seal {
  /** The answer the block came in. */
  readonly reply: string;
  /** Position among the thinking blocks of that answer, from 0, and how many there were. */
  readonly index: number;
  readonly count: number;
  /** How many blocks of any kind the answer had before this one. */
  readonly blocksBefore: number;
  /** Hash of the thinking text. */
  readonly text: string;
  /** Hash of the messages the answer followed. */
  readonly prefix: string;
}

/** Makes signatures and recognizes its own. */
export interface ThinkingSeals {
  sign(seal: Seal): string;
  /** Null for a signature that this simulator, or one with the same key, has not issued. */
  open(signature: string): Seal | null;
}

/** A short hash of a list of texts. */
export function hashTexts(texts: readonly string[]): string {
  const hash = createHash("sha256");
  for (const text of texts) hash.update(`${text.length}:`).update(text);
  return hash.digest("base64url").slice(0, 22);
}

/**
 * Seals carry what they bind and are authenticated. So a conversation can continue with a second simulator that has the
 * same key, as a provider's memory does not end with one of its processes.
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
      // Authenticated, hence written by `sign`.
      return JSON.parse(Buffer.from(payload, "base64url").toString()) as Seal;
    },
  };
}
