import { readWindow, type SessionEntry, type SessionRef, type SessionState, ThroughlineError } from "@throughline/core";
import {
  assertKnownOptions,
  auditSummary,
  Deadline,
  runInSlices,
  tellListener,
  untilAborted,
  withSystemPorts,
  type SystemPorts,
} from "@throughline/core/internal";
import { appendClaimed, changeState } from "./checkpoint-claim.ts";
import type { NoCheckpointReason } from "./checkpoint-event.ts";
import { checkpointMaterial, type CheckpointMaterial } from "./checkpoint-material.ts";
import { parseCheckpoint, type CheckpointContent } from "./checkpoint-prompt.ts";
import {
  afterCheckpoint,
  afterExpiry,
  afterFailure,
  afterRelease,
  checkpointPatch,
  countPatch,
  countUserMessages,
  isClaimed,
  phaseAt,
  readCheckpointState,
  type CheckpointState,
} from "./checkpoint-state.ts";
import { checkpointSteps } from "./checkpoint-steps.ts";
import { checkpointTrigger, type CheckpointMeasurement } from "./checkpoint-trigger.ts";
import type { CheckpointReply } from "./checkpoint-writer.ts";
import {
  checkpointerTable,
  turnSizeTable,
  type CheckpointerOptions,
  type Checkpointer,
  type CheckpointResult,
  type CheckpointRun,
  type TurnSize,
} from "./checkpointer-options.ts";

interface WrittenWith {
  readonly tokens: number | null;
  /** States the user message count that the checkpoint covers. */
  readonly counted: number;
  readonly writer: string;
  readonly usage: CheckpointReply["usage"];
}

interface Job {
  readonly ref: SessionRef;
  /** Equals the record id of the claim, so that the claim can be matched with its checkpoint. */
  readonly recordId: string;
  /** Names the session of the claim, because a reset may give the key to another session. */
  readonly sessionId: string;
}

/** Returns the state for the start of a checkpoint, or null when it is no longer due. */
type Claim = (state: CheckpointState, entry: SessionEntry) => CheckpointState | null;

/**
 * Creates a checkpointer, which writes summaries of sessions as records in the background of their turns.
 *
 * @throws {ThroughlineError} INPUT_INVALID for an option that is not known, has another type, or is out of range
 * @example
 * const checkpointer = createCheckpointer({
 * store,
 * owner: "worker-1",
 * writers: [chatCheckpointWriter(model)],
 * });
 * await checkpointer.afterTurn(ref, entry, { tokens: 60_000, windowTokens: 200_000 })?.done;
 */
export function createCheckpointer(options: CheckpointerOptions): Checkpointer {
  assertKnownOptions<CheckpointerOptions>("createCheckpointer", options, checkpointerTable);
  return new StoreCheckpointer(withSystemPorts(options));
}

class StoreCheckpointer implements Checkpointer {
  private readonly options: CheckpointerOptions & SystemPorts;
  private readonly running = new Map<string, Promise<CheckpointResult>>();
  private readonly closing = new AbortController();

  constructor(options: CheckpointerOptions & SystemPorts) {
    this.options = options;
  }

  turnPatch(entry: SessionEntry, userMessages: number): Readonly<Record<string, unknown>> {
    return countPatch(entry, userMessages);
  }

  afterTurn(ref: SessionRef, entry: SessionEntry, size: TurnSize): CheckpointRun | null {
    assertKnownOptions<TurnSize>("afterTurn", size, turnSizeTable, "size");
    const { settings = {}, writers = [], clock } = this.options;
    if (settings.enabled === false || writers.length === 0 || this.running.has(keyOf(ref))) return null;
    const nowMs = clock.nowMs();
    const state = readCheckpointState(entry);
    const { due, percent } = checkpointTrigger(state, measured(entry, state, size), settings);
    const step = checkpointSteps[phaseAt(state, nowMs)][due === null ? "not-due" : "due"];
    const isExpired = state.running !== null && !isClaimed(state, nowMs);
    if (step?.starts !== true || due === null) {
      if (isExpired) void this.start(ref, () => this.expire(ref));
      return null;
    }
    const claim: Claim = (now, newest) => {
      // The entry may have changed since the turn ended, so the claim uses the current entry. After a compaction the
      // size of the turn is stale: it would mark thresholds that the smaller window has yet to reach.
      if (newest.compactionCount !== entry.compactionCount) return null;
      const trigger = checkpointTrigger(now, measured(newest, now, size), settings);
      return phaseAt(now, clock.nowMs()) === "idle" && trigger.due !== null ? trigger.state : null;
    };
    tellListener(this.options.onEvent, { name: "checkpoint.started", ref, due, percent });
    return { due, done: this.start(ref, () => this.generate(ref, size.tokens, percent, claim)) };
  }

  make(ref: SessionRef, tokens: number | null): Promise<CheckpointResult> {
    const known = this.running.get(keyOf(ref));
    if (known !== undefined) return known;
    if ((this.options.writers ?? []).length === 0) return Promise.resolve({ kind: "nothing", reason: "no-writers" });
    return this.start(ref, async () => {
      // A second request without new messages writes nothing, so that repeats do not change the entry.
      if ((await this.read(ref)).material === null) return { kind: "nothing", reason: "nothing-new" };
      tellListener(this.options.onEvent, { name: "checkpoint.started", ref, due: "asked", percent: null });
      return this.generate(ref, tokens, null, (now) => now);
    });
  }

  async close(): Promise<void> {
    this.closing.abort();
    await Promise.all(this.running.values());
  }

  private start(ref: SessionRef, work: () => Promise<CheckpointResult>): Promise<CheckpointResult> {
    const key = keyOf(ref);
    const done = work()
      .catch((cause: unknown): CheckpointResult => ({ kind: "failed", cause }))
      .finally(() => this.running.delete(key));
    this.running.set(key, done);
    return done;
  }

  private async expire(ref: SessionRef): Promise<CheckpointResult> {
    await this.change(ref, (state) => afterExpiry(state, this.options.clock.nowMs()));
    return { kind: "nothing", reason: "not-due" };
  }

  private async generate(
    ref: SessionRef,
    tokens: number | null,
    percent: number | null,
    claim: Claim,
  ): Promise<CheckpointResult> {
    const { clock, ids, owner, deadlineMs = 600_000 } = this.options;
    const recordId = ids.next();
    const running = { owner, untilMs: clock.nowMs() + deadlineMs + graceMs, percent, recordId };
    const claimed = await this.claim(ref, running, claim);
    if (claimed.refusal !== null) return this.dropped(ref, claimed.refusal);
    const job: Job = { ref, recordId, sessionId: claimed.sessionId };
    try {
      const { material, state } = await this.read(ref);
      if (material === null) {
        await this.change(ref, (now) => (isOf(job, now) ? { ...now, running: null } : now));
        return this.dropped(ref, "nothing-new");
      }
      const counted = countUserMessages(state.entry);
      const { content, ...by } = await this.ask(ref, material);
      return await this.write(job, material, content, { tokens, counted, ...by });
    } catch (cause) {
      return this.failed(job, cause);
    }
  }

  /**
   * Handles a failure. After the claim expired, another process owns the checkpoint, so this failure must not count
   * against the session.
   */
  private async failed(job: Job, cause: unknown): Promise<CheckpointResult> {
    const { ref, recordId, sessionId } = job;
    const isEnded = this.closing.signal.aborted;
    let lost: "reset" | "overtaken" | null = null;
    const kept = await this.change(ref, (now, entry) => {
      const isOther = !isOf(job, now) && now.lastId !== recordId;
      lost = entry.sessionId !== sessionId ? "reset" : isOther ? "overtaken" : null;
      if (!isOf(job, now)) return now;
      return isEnded ? afterRelease(now) : afterFailure(now, this.options.clock.nowMs());
    });
    if (lost !== null) return this.dropped(ref, lost);
    tellListener(this.options.onEvent, { name: "checkpoint.failed", ref, cause, notBeforeMs: kept.notBeforeMs });
    return { kind: "failed", cause };
  }

  private dropped(ref: SessionRef, reason: NoCheckpointReason): CheckpointResult {
    tellListener(this.options.onEvent, { name: "checkpoint.dropped", ref, reason });
    return { kind: "nothing", reason };
  }

  private async read(
    ref: SessionRef,
  ): Promise<{ readonly material: CheckpointMaterial | null; readonly state: SessionState }> {
    const { records: read, state } = await readWindow(this.options.store, ref, { signal: this.closing.signal });
    const records = read.filter(({ seq }) => seq <= state.head.lastSeq);
    return { material: await runInSlices(checkpointMaterial(records, state.head.headId)), state };
  }

  /** Claims the checkpoint. A null `refusal` means that this process holds the claim. */
  private async claim(
    ref: SessionRef,
    running: NonNullable<CheckpointState["running"]>,
    claim: Claim,
  ): Promise<{ readonly refusal: NoCheckpointReason | null; readonly sessionId: string }> {
    let refusal: NoCheckpointReason | null = null;
    let sessionId = "";
    await this.change(ref, (now, entry) => {
      const held = isClaimed(now, this.options.clock.nowMs());
      const claimed = held ? null : claim(now, entry);
      refusal = held ? "in-the-making" : claimed === null ? "not-due" : null;
      ({ sessionId } = entry);
      return claimed === null ? now : { ...claimed, running };
    });
    return { refusal, sessionId };
  }

  private async ask(
    ref: SessionRef,
    material: CheckpointMaterial,
  ): Promise<{ readonly content: CheckpointContent } & Pick<WrittenWith, "writer" | "usage">> {
    const { writers = [], clock, deadlineMs = 600_000, maxOutputTokens = 2000 } = this.options;
    const { text, previousSummary } = material;
    await using deadline = new Deadline(clock, deadlineMs, this.closing.signal);
    const { signal } = deadline;
    const coveredTokens = Math.ceil((text.length + (previousSummary?.length ?? 0)) / 4);
    let last: unknown = new ThroughlineError("INPUT_INVALID", "No writer of checkpoints is configured.");
    for (const { name: writer, write } of writers) {
      if (signal.aborted) break;
      try {
        const given = await untilAborted(write({ text, previousSummary, maxOutputTokens, signal }), signal);
        const reply = typeof given === "string" ? { text: given, usage: null } : given;
        const content = parseCheckpoint(reply.text);
        const problem = content === null ? "empty" : auditSummary(content.summary, { coveredTokens });
        if (content !== null && problem === null) return { content, writer, usage: reply.usage };
        throw new TypeError(`the reply is no checkpoint: ${problem}`);
      } catch (cause) {
        last = cause;
        tellListener(this.options.onEvent, { name: "checkpoint.writer-failed", ref, writer, cause });
      }
    }
    throw last;
  }

  private async write(
    { ref, recordId, sessionId }: Job,
    { coversToId, previousSummaryId, messageCount }: CheckpointMaterial,
    content: CheckpointContent,
    { tokens, counted, writer, usage }: WrittenWith,
  ): Promise<CheckpointResult> {
    const checkpoint = {
      ...content,
      tokensAtCheckpoint: tokens ?? 0,
      messageCountAtCheckpoint: messageCount,
      coversToId,
      previousSummaryId,
      model: writer,
      ...(usage === null ? {} : { usage }),
    };
    const draft = { type: "checkpoint", id: recordId, checkpoint } as const;
    const lost = await appendClaimed({ store: this.options.store, ref }, draft, sessionId, (entry) =>
      checkpointPatch(afterCheckpoint(readCheckpointState(entry), recordId, counted)),
    );
    if (lost !== null) return this.dropped(ref, lost);
    tellListener(this.options.onEvent, { name: "checkpoint.written", ref, recordId, writer, usage });
    return { kind: "written", recordId, coversToId, ...content };
  }

  private change(
    ref: SessionRef,
    change: (state: CheckpointState, entry: SessionEntry) => CheckpointState,
  ): Promise<CheckpointState> {
    const { store, clock } = this.options;
    return changeState({ store, clock, ref }, change);
  }
}

function isOf({ recordId }: Job, { running }: CheckpointState): boolean {
  return running?.recordId === recordId;
}

function measured(entry: SessionEntry, state: CheckpointState, size: TurnSize): CheckpointMeasurement {
  return { ...size, userMessages: countUserMessages(entry) - state.countedMessages };
}

/** Keeps a claim valid for the append, after the deadline of the writers. */
const graceMs = 60_000;

function keyOf({ namespace, agentId, key, archiveId }: SessionRef): string {
  return JSON.stringify([namespace, agentId, key, archiveId ?? null]);
}
