import { createFinding } from "@throughline/core/internal";
import { type Finding, type SessionRef, type SessionState, type SessionStore } from "@throughline/core";
import { wentOn } from "./find-made-session.ts";
import type { ImportReceipt } from "./receipt-types.ts";
import type { SessionWriter } from "./session-writer.ts";
import type { SourceRegistry } from "./source-registry.ts";
import type { TranscriptSource } from "./transcript-source.ts";

export interface ArchivedSource {
  readonly store: SessionStore;
  readonly registry: SourceRegistry;
  readonly source: TranscriptSource;
  readonly ref: SessionRef;
  /** Of the session, with all of the source in it. */
  readonly receipt: ImportReceipt;
  readonly isBegunBefore: boolean;
  readonly writer: SessionWriter;
}

export interface FollowedArchive {
  /** Archived now; null when it stays where it is. */
  readonly state: SessionState | null;
  readonly finding: Finding | null;
}

/**
 * Archives a session because its source is archived. One that was restored here after that, or that continued here,
 * stays.
 */
export async function followArchive(archived: ArchivedSource): Promise<FollowedArchive> {
  const { store, registry, source, ref, isBegunBefore, writer } = archived;
  const { path, archivedAt } = source;
  const why = isBegunBefore ? await reasonToStay(archived) : null;
  if (why !== null) {
    const message = `Its program has put the transcript aside; the session ${why} here and stays as it is.`;
    return { state: null, finding: createFinding("SESSION_LEFT_ALONE", message, { path, key: ref.key }) };
  }
  let { receipt } = archived;
  // An archive takes no writes: what its source is called now is said before.
  const isToldOf = receipt.path === path && receipt.archivedAt === (archivedAt ?? undefined);
  if (isBegunBefore && !isToldOf) {
    receipt = { ...receipt, path, ...(archivedAt === null ? {} : { archivedAt }) };
    await writer.writeReceipt(receipt);
  }
  const state = await store.move(ref, { kind: "archive" });
  await registry.made(state, receipt);
  return { state, finding: null };
}

async function reasonToStay({ store, registry, source, ref, receipt }: ArchivedSource): Promise<string | null> {
  if (await registry.wasArchived(source.path, ref.agentId)) return "was restored";
  const state = await store.load(ref);
  return state !== null && wentOn(state, receipt) ? "went on" : null;
}
