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
import { replyFields, spentTokens } from "./reply-fields.ts";
import { withSdkSessionId } from "./sdk-session-id.ts";

/** Holds the open turn of one run. The store refuses its appends once another run has taken over. */
export interface SdkTurn {
  append(drafts: readonly RecordDraft[]): Promise<void>;
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

/** Opens a turn with the user's message. @throws {ThroughlineError} SESSION_BUSY */
export async function openSdkTurn(options: SdkTurnOptions, drafts: readonly RecordDraft[]): Promise<SdkTurn> {
  const { store, ref, clock, random, leaseMs, owner } = options;
  const turnId = random.uuid();
  const { entry: before, head } = await loadExisting(store, ref);
  const fence = head.fence + 1;
  const mark = (state: string): RecordDraft => throughlineDraft("turn", { turnId, owner, fence, state });
  const leaseUntilMs = clock.nowMs() + leaseMs;
  let spent = spentTokens(before);
  const write = async (more: readonly RecordDraft[], appendOptions: AppendOptions): Promise<void> => {
    await appendOnce(store, ref, more, { ...appendOptions, idempotencyKey: random.uuid(), isNewKey: true });
  };
  await write([...drafts, mark("open")], {
    entry: { updatedAt: clock.nowMs() },
    turn: { action: "open", turnId, owner, leaseUntilMs, fence },
  });
  const renewed = renewTurn(store, ref, { fence, leaseMs, clock });
  const within = { action: "within", fence } as const;
  const append = async (more: readonly RecordDraft[], entry: Readonly<Record<string, unknown>> = {}): Promise<void> => {
    if (renewed.failure !== null) throw renewed.failure;
    const replies = replyFields(more, spent);
    await write(more, { entry: { ...replies.fields, ...entry }, turn: within });
    spent = replies.spent;
  };
  const end = async (state: string): Promise<void> => {
    await renewed.stop();
    const entry = { updatedAt: clock.nowMs() };
    await write([mark(state)], { entry, turn: { action: "close", fence } });
  };
  return {
    append: (more) => append(more),
    setSdkSessionId: async (id, more) => {
      const { entry } = await loadExisting(store, ref);
      await append(more, { ...withSdkSessionId(entry, id), updatedAt: clock.nowMs() });
    },
    close: () => end("done"),
    fail: async (state) => {
      try {
        await end(state);
      } catch (error) {
        // Another run has started, so this run has no turn left to close.
        if (!hasErrorCode(error, "TURN_FENCED")) throw error;
      }
    },
  };
}
