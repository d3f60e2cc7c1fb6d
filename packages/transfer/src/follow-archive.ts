import { createFinding } from "@throughline/core/internal";
import type { Finding, SessionRef, SessionState, SessionStore } from "@throughline/core";
import { wentOn } from "./find-session.ts";
import type { ImportReceipt } from "./import-receipt.ts";
import type { SessionWriter } from "./session-writer.ts";
import type { TranscriptSource } from "./transcript-source.ts";

export interface ArchivedSource {
  readonly store: SessionStore;
  readonly source: TranscriptSource;
  readonly ref: SessionRef;
  /** Describes the session after all of the source was imported. */
  readonly receipt: ImportReceipt;
  /** Holds the receipt that this import found; null when this import began the session. */
  readonly before: ImportReceipt | null;
  readonly writer: SessionWriter;
}

export interface FollowedArchive {
  /** Holds the archived session; null when the session stays active. */
  readonly state: SessionState | null;
  readonly finding: Finding | null;
}

/**
 * Archives a session because its source is archived. A session that was restored or continued here since then stays
 * active, because its user still works in it.
 */
export async function followArchive(archived: ArchivedSource): Promise<FollowedArchive> {
  const { store, source, ref, before, writer } = archived;
  const { path, archivedAt } = source;
  const why = before !== null ? await reasonToStay(archived) : null;
  if (why !== null) {
    const message = `Its program has put the transcript aside; the session ${why} here and stays as it is.`;
    return { state: null, finding: createFinding("SESSION_LEFT_ALONE", message, { path, key: ref.key }) };
  }
  let { receipt } = archived;
  // An archive takes no writes, so the source's new path is stored before the move.
  const isToldOf = receipt.path === path && receipt.archivedAt === (archivedAt ?? undefined);
  if (before !== null && !isToldOf) {
    receipt = { ...receipt, path, ...(archivedAt === null ? {} : { archivedAt }) };
    await writer.writeReceipt(receipt);
  }
  const state = await store.move(ref, { kind: "archive" });
  return { state, finding: null };
}

async function reasonToStay({ store, source, ref, receipt, before }: ArchivedSource): Promise<string | null> {
  // An import that read all of this archive has put the session aside since.
  const isFollowed = before?.path === source.path && before.archivedAt !== undefined && before.isPartial !== true;
  if (isFollowed) return "was restored";
  const state = await store.load(ref);
  return state !== null && wentOn(state, receipt) ? "went on" : null;
}
