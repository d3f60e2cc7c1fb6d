import { forkSession, updateEntry } from "@throughline/core/internal";
import {
  type RandomSource,
  type SessionEntry,
  sessionRef,
  type SessionRef,
  type SessionStore,
} from "@throughline/core";
import { readTurnMark } from "./turn-mark.ts";

export interface BranchOptions {
  readonly store: SessionStore;
  readonly ref: SessionRef;
  readonly random: RandomSource;
  /** Names the running turn; the branch ends before it. Null copies the whole session. */
  readonly beforeTurnId: string | null;
  readonly signal?: AbortSignal | undefined;
}

/** Copies the session as it was before a turn, under a new key. */
export async function branchSession(options: BranchOptions): Promise<SessionRef> {
  const { store, ref, random, beforeTurnId } = options;
  const suffix = `-branch-${random.uint32().toString(16).padStart(8, "0")}`;
  const target = sessionRef({ ...ref, key: `${ref.key.slice(0, 512 - suffix.length)}${suffix}` });
  const sessionId = random.uuid();
  const state = await store.load(ref);
  const atSeq = beforeTurnId === null ? (state?.head.lastSeq ?? 0) : await seqBefore(options, beforeTurnId);
  const given = options.signal === undefined ? {} : { signal: options.signal };
  await forkSession(store, ref, target, { sessionId, atSeq, ...given });
  const kept = branchEntry(state?.entry ?? { sessionId });
  await updateEntry(store, target, (entry) => ({ ...kept, ...entry }));
  return target;
}

/** The mark of a running turn is near the end of the log, so the search runs backwards. */
async function seqBefore({ store, ref, signal }: BranchOptions, turnId: string): Promise<number> {
  const options = { order: "descending" as const, ...(signal === undefined ? {} : { signal }) };
  for await (const page of store.read(ref, options)) {
    for (const { seq, record } of page.records) {
      const mark = readTurnMark(record);
      if (mark?.turnId === turnId && mark.state === "open") return seq - 1;
    }
  }
  return 0;
}

/**
 * The branch keeps the fields about the conversation and its rules. Fields that belong to one session only are left
 * out.
 */
function branchEntry(entry: SessionEntry): Readonly<Record<string, unknown>> {
  const { sessionId: _id, sessionFile: _file, previousSessionIds: _ids, updatedAt: _at, ...kept } = entry;
  return kept;
}
