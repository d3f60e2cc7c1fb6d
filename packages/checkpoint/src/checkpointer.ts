import {
  loadExisting,
  readWindow,
  ThroughlineError,
  updateEntry,
  type RecordDraft,
  type SessionEntry,
  type SessionRef,
  type SessionState,
} from "@throughline/core";
import { auditSummary, Deadline, untilAborted } from "@throughline/core/summaries";
import { tell, type CheckpointEvent } from "./checkpoint-event.ts";
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
import type {
  CheckpointerOptions,
  Checkpointer,
  CheckpointResult,
  CheckpointRun,
  NoCheckpointReason,
  TurnSize,
} from "./checkpointer-options.ts";

interface WrittenWith {
  readonly tokens: number | null;
  /** Messages of the user it has behind it. */
  readonly counted: number;
  readonly writer: string;
  readonly sessionId: string;
}

/** The state with which a checkpoint begins; null when it is not due any more. */
type Claim = (state: CheckpointState, entry: SessionEntry) => CheckpointState | null;

export function createCheckpointer(options: CheckpointerOptions): Checkpointer {
  return new StoreCheckpointer(options);
}

class StoreCheckpointer implements Checkpointer {
  private readonly options: CheckpointerOptions;
  private readonly running = new Map<string, Promise<CheckpointResult>>();
  private readonly closing = new AbortController();

  constructor(options: CheckpointerOptions) {
    this.options = options;
  }

  turnPatch(entry: SessionEntry, userMessages: number): Readonly<Record<string, unknown>> {
    return countPatch(entry, userMessages);
  }

  afterTurn(ref: SessionRef, entry: SessionEntry, size: TurnSize): CheckpointRun | null {
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
      // The entry may have moved on since the turn ended: the claim is made on what it says now.
      const trigger = checkpointTrigger(now, measured(newest, now, size), settings);
      return phaseAt(now, clock.nowMs()) === "idle" && trigger.due !== null ? trigger.state : null;
    };
    tell(this.options.onEvent, { name: "checkpoint.started", ref, due, percent });
    return { due, done: this.start(ref, () => this.generate(ref, size.tokens, percent, claim)) };
  }

  make(ref: SessionRef, tokens: number | null): Promise<CheckpointResult> {
    const known = this.running.get(keyOf(ref));
    if (known !== undefined) return known;
    if ((this.options.writers ?? []).length === 0) return Promise.resolve({ kind: "nothing", reason: "no-writers" });
    return this.start(ref, async () => {
      // Asked twice it claims nothing and writes nothing, the entry included.
      if ((await this.read(ref)).material === null) return { kind: "nothing", reason: "nothing-new" };
      tell(this.options.onEvent, { name: "checkpoint.started", ref, due: "asked", percent: null });
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
    const { clock, deadlineMs = 600_000 } = this.options;
    const running = { owner: this.options.owner, untilMs: clock.nowMs() + deadlineMs + graceMs, percent };
    const refusal = await this.claim(ref, running, claim);
    if (refusal !== null) return { kind: "nothing", reason: refusal };
    try {
      const { material, state } = await this.read(ref);
      if (material === null) {
        await this.change(ref, (now) => ({ ...now, running: null }));
        return { kind: "nothing", reason: "nothing-new" };
      }
      const counted = countUserMessages(state.entry);
      const { content, writer } = await this.ask(ref, material);
      const { sessionId } = state;
      return await this.write(ref, material, content, { tokens, counted, writer, sessionId });
    } catch (cause) {
      const isEnded = this.closing.signal.aborted;
      const kept = await this.change(ref, (now) => {
        // Whoever comes back after its time has no say any more.
        if (now.running?.owner !== running.owner || now.running.untilMs !== running.untilMs) return now;
        return isEnded ? afterRelease(now) : afterFailure(now, clock.nowMs());
      });
      tell(this.options.onEvent, { name: "checkpoint.failed", ref, cause, notBeforeMs: kept.notBeforeMs });
      return { kind: "failed", cause };
    }
  }

  private async read(
    ref: SessionRef,
  ): Promise<{ readonly material: CheckpointMaterial | null; readonly state: SessionState }> {
    const { records: read, state } = await readWindow(this.options.store, ref, { signal: this.closing.signal });
    const records = read.filter(({ seq }) => seq <= state.head.lastSeq);
    return { material: checkpointMaterial(records, state.head.headId), state };
  }

  /** Null: it is this one's to make. */
  private async claim(
    ref: SessionRef,
    running: NonNullable<CheckpointState["running"]>,
    claim: Claim,
  ): Promise<NoCheckpointReason | null> {
    let refusal: NoCheckpointReason | null = null;
    await this.change(ref, (now, entry) => {
      const held = isClaimed(now, this.options.clock.nowMs());
      const claimed = held ? null : claim(now, entry);
      refusal = held ? "in-the-making" : claimed === null ? "not-due" : null;
      return claimed === null ? now : { ...claimed, running };
    });
    return refusal;
  }

  private async ask(
    ref: SessionRef,
    material: CheckpointMaterial,
  ): Promise<{ readonly content: CheckpointContent; readonly writer: string }> {
    const { writers = [], clock, deadlineMs = 600_000, maxOutputTokens = 2000 } = this.options;
    const { text, previousSummary } = material;
    await using deadline = new Deadline(clock, deadlineMs, this.closing.signal);
    const { signal } = deadline;
    let last: unknown = new ThroughlineError("INPUT_INVALID", "No writer of checkpoints is configured.");
    for (const { name: writer, write } of writers) {
      if (signal.aborted) break;
      try {
        const reply = await untilAborted(write({ text, previousSummary, maxOutputTokens, signal }), signal);
        const content = parseCheckpoint(reply);
        const problem = content === null ? "empty" : auditSummary(content.summary);
        if (content !== null && problem === null) return { content, writer };
        throw new TypeError(`the reply is no checkpoint: ${problem}`);
      } catch (cause) {
        last = cause;
        tell(this.options.onEvent, { name: "checkpoint.writer-failed", ref, writer, cause });
      }
    }
    throw last;
  }

  private async write(
    ref: SessionRef,
    { coversToId, previousSummaryId, messageCount }: CheckpointMaterial,
    content: CheckpointContent,
    { tokens, counted, writer, sessionId }: WrittenWith,
  ): Promise<CheckpointResult> {
    const { store, ids } = this.options;
    const recordId = ids.next();
    const checkpoint = {
      ...content,
      tokensAtCheckpoint: tokens ?? 0,
      messageCountAtCheckpoint: messageCount,
      coversToId,
      previousSummaryId,
      model: writer,
    };
    const draft: RecordDraft = { type: "checkpoint", id: recordId, checkpoint };
    const now = await loadExisting(store, ref);
    // A reset meanwhile: what was said in the session before is none of the new one's.
    if (now.sessionId !== sessionId) return { kind: "nothing", reason: "reset" };
    const { entry } = now;
    const patch = checkpointPatch(afterCheckpoint(readCheckpointState(entry), recordId, counted));
    await this.appendOnce(ref, draft, patch);
    tell(this.options.onEvent, { name: "checkpoint.written", ref, recordId, writer } satisfies CheckpointEvent);
    return { kind: "written", recordId, coversToId, ...content };
  }

  /** An answer that got lost is asked for again under the same key. */
  private async appendOnce(
    ref: SessionRef,
    draft: RecordDraft,
    entry: Readonly<Record<string, unknown>>,
  ): Promise<void> {
    const options = { entry, idempotencyKey: `checkpoint:${draft.id}` };
    try {
      await this.options.store.append(ref, [draft], options);
    } catch (error) {
      const isUnknown = ThroughlineError.isInstance(error) && error.outcome === "unknown" && error.retryable;
      if (!isUnknown) throw error;
      await this.options.store.append(ref, [draft], options);
    }
  }

  private async change(
    ref: SessionRef,
    change: (state: CheckpointState, entry: SessionEntry) => CheckpointState,
  ): Promise<CheckpointState> {
    let after: CheckpointState | null = null;
    await updateEntry(this.options.store, ref, (entry) => {
      const before = readCheckpointState(entry);
      after = change(before, entry);
      return after === before ? entry : { ...entry, ...checkpointPatch(after) };
    });
    if (after === null) throw new ThroughlineError("INTERNAL", "The state of the checkpoints was not looked at.");
    return after;
  }
}

function measured(entry: SessionEntry, state: CheckpointState, size: TurnSize): CheckpointMeasurement {
  return { ...size, userMessages: countUserMessages(entry) - state.countedMessages };
}

/** A claim outlives the deadline of its writers by what the append may take. */
const graceMs = 60_000;

function keyOf({ namespace, agentId, key, archiveId }: SessionRef): string {
  return JSON.stringify([namespace, agentId, key, archiveId ?? null]);
}
