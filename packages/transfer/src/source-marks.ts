import { createHash } from "node:crypto";
import { classifySessionFile } from "@throughline/openclaw-format/internal";
import type { ImportReceipt } from "./receipt-types.ts";

/** What a source is known by when no session says it was imported. */
export interface MarkedSource {
  readonly path: string;
  /** Of the session that was made of it. */
  readonly agentId: string;
  /** The key that was asked for; null: none was. */
  readonly askedKey: string | null;
  /** The session's id in the source. */
  readonly sessionId: string;
  /** Whether a header or a line of the source states that id. Then its file may have any name. */
  readonly statesId: boolean;
}

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/i;
/** Programs that draw other ids at random make them as long as this. */
const longId = /[0-9a-z]{20}/i;

/**
 * Short texts that stay the same for a source, wherever its session lies and even if its program has archived it. One
 * is from its place. If its name holds a UUID, another is from its name, so that a directory may be moved. A third is from
 * the id that it states, so that the file may be called otherwise. They reveal nothing of the content.
 */
export function sourceMarks(source: MarkedSource): readonly string[] {
  const { path, agentId, askedKey } = source;
  const place = withoutArchiveEnding(path);
  const name = place.slice(Math.max(place.lastIndexOf("/"), place.lastIndexOf("\\"), place.lastIndexOf("#")) + 1);
  const texts = [
    `place ${place}`,
    ...(uuid.test(name) ? [`name ${agentId} ${name.replace(/\.jsonl$/, "")}`] : []),
    ...(isKnownById(source) ? [`id ${agentId} ${source.sessionId.toLowerCase()} ${topicIn(name)}`] : []),
  ];
  return texts.map((text) => mark(askedKey === null ? text : `${text} as ${askedKey}`));
}

/** Whether no other session has its id. One of many in a file may be number 1 in the next file, too. */
function isKnownById({ path, sessionId, statesId }: MarkedSource): boolean {
  return uuid.test(sessionId) || (statesId && (!path.includes("#") || longId.test(sessionId)));
}

/** A topic has the session id of its conversation. */
function topicIn(name: string): string {
  return classifySessionFile(name).topicId ?? "";
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
export function receiptMarks(receipt: ImportReceipt, agentId: string): readonly string[] {
  const { path, askedKey, sessionId, statesId = false } = receipt;
  const source = { path, agentId, sessionId, statesId };
  const plain = sourceMarks({ ...source, askedKey: null });
  return askedKey === undefined ? plain : [...plain, ...sourceMarks({ ...source, askedKey })];
}

/** The mark of a source whose session an import has archived because its program did. */
export function archivedMark(path: string, agentId: string): string {
  return mark(`archived ${agentId} ${path}`);
}

function mark(text: string): string {
  return createHash("sha256").update(text).digest("base64url").slice(0, 16);
}
