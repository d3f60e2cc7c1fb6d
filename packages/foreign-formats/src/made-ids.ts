import { createHash } from "node:crypto";

/** The UUID is a hash of the texts in the form of a random UUID (version 4). The same texts always give the same id. */
export function uuidOf(...texts: readonly string[]): string {
  const hex = hexOf(texts);
  return uuid(hex.slice(0, 12), "4", hex);
}

/** The UUID begins with the time (version 7). The same time and texts always give the same id. */
export function timedUuidOf(atMs: number, ...texts: readonly string[]): string {
  const time = Math.max(0, Math.trunc(Number.isFinite(atMs) ? atMs : 0));
  return uuid(time.toString(16).padStart(12, "0").slice(-12), "7", hexOf(texts));
}

function uuid(first: string, version: string, hex: string): string {
  const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 0x3) | 0x8).toString(16);
  const groups = [first.slice(0, 8), first.slice(8, 12), version + hex.slice(13, 16), variant + hex.slice(17, 20)];
  return [...groups, hex.slice(20, 32)].join("-");
}

function hexOf(texts: readonly string[]): string {
  return createHash("sha256").update(texts.join("\0")).digest("hex");
}

const uuidForm = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

/** Returns true for a UUID in its usual form: 32 hexadecimal digits in five groups. */
export function isUuid(text: string): boolean {
  return uuidForm.test(text);
}
