import { createHash } from "node:crypto";
import type { ImportReceipt } from "./receipt-types.ts";

/** What a source is known by when no session says it was imported. */
export interface MarkedSource {
  readonly path: string;
  /** Of the session that was made of it. */
  readonly agentId: string;
  /** The key that was asked for; null: none was. */
  readonly askedKey: string | null;
}

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/i;

/**
 * Short texts that stay the same for a source, wherever its session lies and even if its program has archived it. One
 * is from its place. If its name holds a UUID, another is from its name, so that a directory may be moved. They reveal
 * nothing of the content.
 */
export function sourceMarks({ path, agentId, askedKey }: MarkedSource): readonly string[] {
  const place = withoutArchiveEnding(path);
  const name = place.slice(Math.max(place.lastIndexOf("/"), place.lastIndexOf("\\"), place.lastIndexOf("#")) + 1);
  const texts = [`place ${place}`, ...(uuid.test(name) ? [`name ${agentId} ${name.replace(/\.jsonl$/, "")}`] : [])];
  return texts.map((text) => mark(askedKey === null ? text : `${text} as ${askedKey}`));
}

/** A path without the suffix that OpenClaw adds to an archived transcript: `.reset`, or that and a time. */
function withoutArchiveEnding(path: string): string {
  const name = Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\"), path.lastIndexOf("#")) + 1;
  for (const ending of [".reset", ".deleted"]) {
    if (path.endsWith(`.jsonl${ending}`)) return path.slice(0, -ending.length);
  }
  const at = path.slice(name).search(/\.jsonl\.(?:reset|deleted)\./);
  return at === -1 ? path : path.slice(0, name + at + ".jsonl".length);
}

/** The marks of a session that was imported: those of its source, and those of its source under the key that was asked for. */
export function receiptMarks({ path, askedKey }: ImportReceipt, agentId: string): readonly string[] {
  const plain = sourceMarks({ path, agentId, askedKey: null });
  return askedKey === undefined ? plain : [...plain, ...sourceMarks({ path, agentId, askedKey })];
}

/** The mark of a source whose session an import has archived because its program did. */
export function archivedMark(path: string, agentId: string): string {
  return mark(`archived ${agentId} ${path}`);
}

function mark(text: string): string {
  return createHash("sha256").update(text).digest("base64url").slice(0, 16);
}
