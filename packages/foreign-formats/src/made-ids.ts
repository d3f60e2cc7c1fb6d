import { createHash } from "node:crypto";

/** A UUID that is made of texts: always the same one of the same texts, and of the form that random ones have. */
export function uuidOf(...texts: readonly string[]): string {
  const hex = createHash("sha256").update(texts.join("\0")).digest("hex");
  const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 0x3) | 0x8).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

const uuidForm = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

export function isUuid(text: string): boolean {
  return uuidForm.test(text);
}
