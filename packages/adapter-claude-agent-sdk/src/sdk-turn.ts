import {
  appendOnce,
  type AppendOptions,
  type Clock,
  hasErrorCode,
  type RandomSource,
  type RecordDraft,
  type SessionRef,
  type SessionStore,
} from "@throughline/core";
import { loadExisting, renewTurn, throughlineDraft } from "@throughline/core/internal";
import { readSpentTokens, replyFields } from "./reply-fields.ts";
import { withSdkSessionId } from "./sdk-session-id.ts";

/** Holds the open turn of one run. The store refuses every write of the turn once another run has taken over. */
export interface SdkTurn {
  append(drafts: readonly RecordDraft[]): Promise<void>;
  /** Appends the drafts and stores the SDK's session id in the same commit; null clears the id. */
  setSdkSessionId(id: string | null, drafts: readonly RecordDraft[]): Promise<void>;
  close(): Promise<void>;
  /** Closes the turn after a failure. Does nothing when another run has taken over. */
  fail(state: "aborted" | "failed"): Promise<void>;
}

interface SdkTurnOptions {
  readonly store: SessionStore;
  readonly ref: SessionRef;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly leaseMs: number;
  readonly owner: string;
}

/** Opens a turn with the drafts of the user's message. @throws {ThroughlineError} SESSION_BUSY */
export async function openSdkTurn(options: SdkTurnOptions, firstDrafts: readonly RecordDraft[]): Promise<SdkTurn> {
  const { store, ref, clock, random, leaseMs, owner } = options;
  const turnId = random.uuid();
  const { entry: firstEntry, head } = await loadExisting(store, ref);
  // Each turn raises the fence by one, so the store can tell this turn from an older one.
  const fence = head.fence + 1;
  const turnMark = (state: string): RecordDraft => throughlineDraft("turn", { turnId, owner, fence, state });
  const leaseUntilMs = clock.nowMs() + leaseMs;
  let spent = readSpentTokens(firstEntry);
  const write = async (drafts: readonly RecordDraft[], appendOptions: AppendOptions): Promise<void> => {
    await appendOnce(store, ref, drafts, { ...appendOptions, idempotencyKey: random.uuid(), isNewKey: true });
  };
  await write([...firstDrafts, turnMark("open")], {
    entry: { updatedAt: clock.nowMs() },
    turn: { action: "open", turnId, owner, leaseUntilMs, fence },
  });
  const renewal = renewTurn(store, ref, { fence, leaseMs, clock });
  const append = async (
    drafts: readonly RecordDraft[],
    entry: Readonly<Record<string, unknown>> = {},
  ): Promise<void> => {
    // A failed renewal means that the lease may be lost, so nothing more is written under it.
    if (renewal.failure !== null) throw renewal.failure;
    const replies = replyFields(drafts, spent);
    await write(drafts, { entry: { ...replies.fields, ...entry }, turn: { action: "within", fence } });
    spent = replies.spent;
  };
  const closeAs = async (state: string): Promise<void> => {
    await renewal.stop();
    const entry = { updatedAt: clock.nowMs() };
    await write([turnMark(state)], { entry, turn: { action: "close", fence } });
  };
  return {
    append: (drafts) => append(drafts),
    setSdkSessionId: async (id, drafts) => {
      // The new fields must keep the ids of other programs, which may have changed since the turn was opened.
      const { entry } = await loadExisting(store, ref);
      await append(drafts, { ...withSdkSessionId(entry, id), updatedAt: clock.nowMs() });
    },
    close: () => closeAs("done"),
    fail: async (state) => {
      try {
        await closeAs(state);
      } catch (error) {
        // Another run has started, so this run has no turn left to close.
        if (!hasErrorCode(error, "TURN_FENCED")) throw error;
      }
    },
  };
}
