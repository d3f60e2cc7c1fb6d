import { createHash } from "node:crypto";
import { classifySessionFile } from "@throughline/openclaw-format/internal";
import type { ImportReceipt } from "./receipt-types.ts";

/** Identifies a source when no session states that it was imported. */
export interface MarkedSource {
  readonly path: string;
  /** Names the agent of the session that was created from the source. */
  readonly agentId: string;
  /** Holds the key that the caller asked for; null without one. */
  readonly askedKey: string | null;
  readonly sessionId: string;
  /** True if a header or a line of the source states the id. The file may then have any name. */
  readonly statesId: boolean;
}

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/i;
/** Random ids of other programs that are not UUIDs have at least this length. */
const longId = /[0-9a-z]{20}/i;

/**
 * Derives short texts that stay the same for a source, even if its session moves or its program archives it. One comes
 * from its path. If the file name holds a UUID, another comes from the name, so that the directory may move. A third
 * comes from a stated id, so that the file may be renamed. The texts are hashes, so they reveal no content.
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

/**
 * True if no other session can have the id. A session of a file with several may be number 1 in the next file as well.
 */
function isKnownById({ path, sessionId, statesId }: MarkedSource): boolean {
  return uuid.test(sessionId) || (statesId && (!path.includes("#") || longId.test(sessionId)));
}

/** A topic shares the session id of its conversation, so the topic distinguishes them. */
function topicIn(name: string): string {
  return classifySessionFile(name).topicId ?? "";
}

/** OpenClaw adds `.reset` or `.deleted` to an archived transcript, with or without a time. */
function withoutArchiveEnding(path: string): string {
  const name = Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\"), path.lastIndexOf("#")) + 1;
  for (const ending of [".reset", ".deleted"]) {
    if (path.endsWith(`.jsonl${ending}`)) return path.slice(0, -ending.length);
  }
  const at = path.slice(name).search(/\.jsonl\.(?:reset|deleted)\./);
  return at === -1 ? path : path.slice(0, name + at + ".jsonl".length);
}

/** Returns the marks of the source, and its marks under the key that the caller asked for. */
export function receiptMarks(receipt: ImportReceipt, agentId: string): readonly string[] {
  const { path, askedKey, sessionId, statesId = false } = receipt;
  const source = { path, agentId, sessionId, statesId };
  const plain = sourceMarks({ ...source, askedKey: null });
  return askedKey === undefined ? plain : [...plain, ...sourceMarks({ ...source, askedKey })];
}

/** Marks a source whose session an import archived because its program had archived it. */
export function archivedMark(path: string, agentId: string): string {
  return mark(`archived ${agentId} ${path}`);
}

function mark(text: string): string {
  return createHash("sha256").update(text).digest("base64url").slice(0, 16);
}
