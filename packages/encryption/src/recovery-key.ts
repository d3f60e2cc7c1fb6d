import { createHash } from "node:crypto";
import { refused } from "@throughline/core/internal";
import { keyBytes } from "./sealed-bytes.ts";

/** Crockford's Base32 has no letters that are read for one another. */
const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const checkBytes = 2;
const groupLength = 5;
const mostLetters = 200;

/** Returns a recovery key as text to print: 55 characters in groups of five. */
export function recoveryKeyText(key: Uint8Array): string {
  const digits = base32(Buffer.concat([key, checkOf(key)]));
  const groups: string[] = [];
  for (let at = 0; at < digits.length; at += groupLength) groups.push(digits.slice(at, at + groupLength));
  return groups.join("-");
}

/**
 * Returns the bytes of a recovery key as a person typed it.
 * @throws {ThroughlineError} MAIN_KEY_WRONG for a text that is no recovery key, or has a mistake
 */
export function parseRecoveryKey(text: string): Buffer {
  const bytes = fromBase32(
    text.slice(0, mostLetters).toUpperCase().replaceAll("O", "0").replaceAll("I", "1").replaceAll("L", "1"),
  );
  const key = bytes.subarray(0, keyBytes);
  if (bytes.byteLength !== keyBytes + checkBytes || !bytes.subarray(keyBytes).equals(checkOf(key)))
    throw refused("MAIN_KEY_WRONG", "The text is not a recovery key, or a character of it is wrong.");
  return key;
}

function checkOf(key: Uint8Array): Buffer {
  return createHash("sha256").update(key).digest().subarray(0, checkBytes);
}

function base32(bytes: Uint8Array): string {
  let [bits, count, text] = [0, 0, ""];
  for (const byte of bytes) {
    bits = ((bits << 8) | byte) & 0xffff;
    for (count += 8; count >= 5; count -= 5) text += alphabet[(bits >> (count - 5)) & 31];
  }
  return count === 0 ? text : text + alphabet[(bits << (5 - count)) & 31];
}

function fromBase32(text: string): Buffer {
  let [bits, count] = [0, 0];
  const bytes: number[] = [];
  for (const letter of text) {
    const digit = alphabet.indexOf(letter);
    if (digit === -1) continue;
    bits = ((bits << 5) | digit) & 0xffff;
    count += 5;
    if (count < 8) continue;
    count -= 8;
    bytes.push((bits >> count) & 0xff);
  }
  return Buffer.from(bytes);
}
