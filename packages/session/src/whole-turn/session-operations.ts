import type { CheckpointResult, CheckpointStatus, ListedCheckpoint } from "@throughline/checkpoint/internal";
import { listCheckpoints } from "@throughline/checkpoint";
import type {
  CompactionPlan,
  CompactionRequest,
  NothingToCompact,
  RetryLimits,
} from "@throughline/compaction/internal";
import type { CompactionResult } from "@throughline/compaction";
import type { SessionDraft } from "@throughline/core/internal";
import type { OpenTurn, SessionRef } from "@throughline/core";
import { outdatedSummaryIds } from "@throughline/core/internal";
import type { TokenEstimator } from "@throughline/tokens";
import type { Session } from "../session.ts";

import type { SessionHandle } from "../session-handle.ts";
import { readLearning } from "../session-learning.ts";
import { entryStatus, summarizerStatus, type AgentSessionStatus, type SummarizerStateSource } from "./agent-status.ts";
import type { WholeTurnParts } from "./whole-turn-parts.ts";

/** Sets the window and the signal of `session.compact`. */
export interface ManualCompactionOptions {
  /** Plans and compacts for a window of this size, in tokens. @default the window of the session's model */
  readonly windowTokens?: number | undefined;
  /** Aborts this call, which then throws ABORTED. */
  readonly signal?: AbortSignal | undefined;
}

/** Reports that a turn is open. */
interface SessionBusy {
  readonly kind: "busy";
  /** Describes the open turn; null for a turn of this handle. */
  readonly turn: OpenTurn | null;
}

/** States how a manual compaction ended. */
export type ManualCompaction = Exclude<CompactionResult, { readonly kind: "busy" }> | SessionBusy;

/** Holds the checkpoints of a session and their state. */
export interface SessionCheckpoints {
  /** Lists the checkpoints, oldest first. */
  readonly checkpoints: readonly ListedCheckpoint[];
  /** Holds counters, failures, and the process that is creating a checkpoint. */
  readonly status: CheckpointStatus;
}

/** Selects the checkpoint of `session.inherit`. */
export interface InheritOptions {
  /** Names the session that has the checkpoint. @default the session itself */
  readonly from?: Session | SessionRef | undefined;
  /** Holds the id of the checkpoint to inherit. @default the newest usable one */
  readonly checkpointId?: string | undefined;
  /** Aborts this call, which then throws ABORTED. */
  readonly signal?: AbortSignal | undefined;
}

/** States how `session.inherit` ended. */
export type InheritResult =
  /** Reports that the session continues from the checkpoint. */
  | {
      readonly kind: "inherited";
      /** Holds the id of the inherited checkpoint. */
      readonly checkpointId: string;
      /**
       * Holds the id of the record that now begins the conversation: a `compaction`, or a `branch_summary` of another
       * session.
       */
      readonly recordId: string;
      /** Counts the messages of the session that the checkpoint replaces. */
      readonly messagesRemoved: number;
    }
  /** Reports that the session was not changed. */
  | {
      readonly kind: "nothing";
      /**
       * States the reason. `no-checkpoint`: no checkpoint is usable. `not-empty`: a checkpoint of another session can
       * only precede the first message. `no-gain`: the checkpoint is not shorter than the messages it would replace.
       * `superseded`: another compaction was faster.
       */
      readonly reason: "no-checkpoint" | "not-empty" | "no-gain" | "superseded";
    }
  | SessionBusy;

interface SessionOperationsOptions {
  readonly parts: WholeTurnParts;
  readonly estimator: TokenEstimator;
  readonly breakers: SummarizerStateSource | null;
  readonly limits: RetryLimits;
}

/** Runs the operations that a program may call between turns. */
export class SessionOperations {
  readonly #options: SessionOperationsOptions;

  constructor(options: SessionOperationsOptions) {
    this.#options = options;
  }

  async plan(session: SessionHandle, options: ManualCompactionOptions): Promise<CompactionPlan | NothingToCompact> {
    await session.refresh();
    return this.#options.parts.compactor.plan(session.ref, await this.#request(session, options));
  }

  async compact(session: SessionHandle, options: ManualCompactionOptions): Promise<ManualCompaction> {
    return this.#compact(session, await this.#readyRequest(session, options));
  }

  async checkpoint(session: SessionHandle): Promise<CheckpointResult> {
    await session.refresh();
    const { gauge } = await session.messages();
    return this.#options.parts.checkpointer.make(session.ref, gauge.tokens);
  }

  async checkpoints(session: SessionHandle, signal?: AbortSignal): Promise<SessionCheckpoints> {
    const { store, clock } = this.#options.parts;
    const checkpoints = await listCheckpoints(store, session.ref, signal === undefined ? {} : { signal });
    await session.refresh();
    return { checkpoints, status: this.#entryStatus(session, clock.nowMs()).checkpoint };
  }

  async inherit(session: SessionHandle, { from, checkpointId, signal }: InheritOptions): Promise<InheritResult> {
    const ref = from === undefined ? session.ref : "ref" in from ? from.ref : from;
    const isOwn = JSON.stringify(ref) === JSON.stringify(session.ref);
    if (!isOwn) return this.#inheritFrom(session, ref, checkpointId ?? null, signal);
    const request = await this.#readyRequest(session, signal === undefined ? {} : { signal });
    if (request === null) return busy(session);
    const way = { checkpointId: checkpointId ?? null };
    const result = await this.#compact(session, { ...request, way });
    if (result.kind === "busy") return result;
    if (result.kind === "superseded") return { kind: "nothing", reason: "superseded" };
    if (result.kind === "nothing") {
      return { kind: "nothing", reason: result.reason === "no-gain" ? "no-gain" : "no-checkpoint" };
    }
    const { recordId, messagesRemoved, checkpointId: taken } = result;
    return { kind: "inherited", checkpointId: taken ?? "", recordId, messagesRemoved };
  }

  async status(session: SessionHandle): Promise<AgentSessionStatus> {
    const { parts, breakers } = this.#options;
    await session.refresh();
    const { gauge } = await session.messages();
    const { tokens, windowTokens } = gauge;
    const { due, triggerTokens } = parts.compactor.need({ tokens, windowTokens, messages: 0 });
    const isRunning = session.runningTurn !== null || session.isInTurn;
    return {
      key: session.key,
      sessionId: session.sessionId,
      turn: isRunning ? "running" : session.interruptedTurn === null ? "idle" : "interrupted",
      gauge,
      compaction: { count: session.entry.compactionCount ?? 0, isDue: due, triggerTokens },
      ...this.#entryStatus(session, parts.clock.nowMs()),
      summarizers: summarizerStatus(breakers),
    };
  }

  #entryStatus({ entry }: Session, nowMs: number): ReturnType<typeof entryStatus> {
    const { parts, limits } = this.#options;
    return entryStatus(entry, { nowMs, limits, isFlushOn: parts.flush !== null });
  }

  /** Returns null while a turn is open, so that no summarizer is called in vain. */
  async #readyRequest(session: SessionHandle, options: ManualCompactionOptions): Promise<CompactionRequest | null> {
    if (session.isInTurn) return null;
    await session.refresh();
    return session.runningTurn === null ? this.#request(session, options) : null;
  }

  async #request(
    session: SessionHandle,
    { windowTokens, signal }: ManualCompactionOptions,
  ): Promise<CompactionRequest> {
    const { chat, modelId } = session.model;
    const { gauge } = await session.messages();
    return {
      counter: await this.#options.estimator.counterFor({ provider: chat.provider, modelId }),
      calibration: readLearning(session.entry).calibration,
      windowTokens: windowTokens ?? gauge.windowTokens,
      totalTokens: gauge.tokens,
      way: "asked",
      ...(signal === undefined ? {} : { signal }),
    };
  }

  async #compact(session: SessionHandle, request: CompactionRequest | null): Promise<ManualCompaction> {
    if (request === null) return busy(session);
    const result = await this.#options.parts.compactor.compact(session.ref, request);
    await session.refresh();
    return result.kind === "busy" ? busy(session) : result;
  }

  /** Puts the checkpoint of another session at the start of a session without messages. */
  async #inheritFrom(
    session: SessionHandle,
    from: SessionRef,
    checkpointId: string | null,
    signal?: AbortSignal,
  ): Promise<InheritResult> {
    await session.refresh();
    if (session.runningTurn !== null) return busy(session);
    if ((await session.messages()).messages.length > 0) return { kind: "nothing", reason: "not-empty" };
    const found = await this.#newestCheckpoint(from, checkpointId, signal);
    if (found === null) return { kind: "nothing", reason: "no-checkpoint" };
    const draft: SessionDraft = {
      type: "branch_summary",
      fromId: found.id,
      summary: found.text,
      details: { v: 1, source: "checkpoint", fromKey: from.key },
    };
    const { records } = await session.append([draft], { expectHead: session.head.headId });
    return { kind: "inherited", checkpointId: found.id, recordId: records[0]?.id ?? "", messagesRemoved: 0 };
  }

  async #newestCheckpoint(
    ref: SessionRef,
    checkpointId: string | null,
    signal?: AbortSignal,
  ): Promise<{ readonly id: string; readonly text: string } | null> {
    const { store } = this.#options.parts;
    const options = signal === undefined ? {} : { signal };
    const listed = await listCheckpoints(store, ref, options);
    const wanted = checkpointId === null ? listed : listed.filter(({ id }) => id === checkpointId);
    if (wanted.length === 0) return null;
    const outdated = new Set<string>();
    for await (const page of store.read(ref, { ...options, afterSeq: wanted[0]?.seq ?? 0 })) {
      for (const id of outdatedSummaryIds(page.records)) outdated.add(id);
    }
    const newest = wanted.findLast(({ id, summary }) => !outdated.has(id) && summary.trim() !== "");
    return newest === undefined ? null : { id: newest.id, text: textOf(newest) };
  }
}

function busy({ runningTurn }: Session): SessionBusy {
  return { kind: "busy", turn: runningTurn };
}

function textOf({ summary, keyDecisions, openQuestions }: ListedCheckpoint): string {
  const list = (heading: string, items: readonly string[]): string =>
    items.length === 0 ? "" : `\n\n${heading}:\n${items.map((item) => `- ${item}`).join("\n")}`;
  return `${summary.trim()}${list("Decisions", keyDecisions)}${list("Open questions", openQuestions)}`;
}
