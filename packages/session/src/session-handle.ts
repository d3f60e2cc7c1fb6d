import { readTranscript, transcriptTable, type SessionTranscript, type TranscriptOptions } from "./transcript.ts";
import { appendTable, resumeTable, turnTable } from "./option-tables.ts";
import {
  type AppendResult,
  type OpenTurn,
  type PartialReply,
  type RecordDraft,
  type SessionEntry,
  type SessionHead,
  type SessionRef,
  type StoredRecord,
  ThroughlineError,
} from "@throughline/core";
import {
  assertArgument,
  assertKnownOptions,
  modelKind,
  noteArchiving,
  optionKinds,
  resetSession,
  type SessionDraft,
} from "@throughline/core/internal";
import type { Spend } from "@throughline/tokens";
import { attachTable, attachTurn, type AttachedTurn, type AttachOptions } from "./attach-turn.ts";
import { readInterruptedTurn, isGone } from "./begin-turn.ts";
import { branches, checkBranchTurn, edit, regenerate, rewind, switchTo } from "./branch-turns.ts";
import { assertContent, assertFiles } from "./content-problem.ts";
import { resetEntry } from "@throughline/policy/internal";
import { readMessages } from "./session-messages.ts";
import type { Session, SessionAppendOptions, SessionMessages } from "./session.ts";
import type { SessionBranch } from "./session-branches.ts";
import type { BranchTurnOptions, ResumeOptions, RunTurnOptions, TurnResult } from "./turn.ts";
import { withdrawApproval } from "./decide-approval.ts";
import { pendingApprovals } from "./pending-approvals.ts";
import type { InterruptedTurn, PendingApproval } from "./turn-mark.ts";
import { readPartial } from "./recover-reply.ts";
import { createEmit, type Emit } from "./session-event.ts";
import { readLearning } from "./session-learning.ts";
import { type SessionLog, targetName, targetOf, type CompactionTokens } from "./session-log.ts";
import { openHandle, type OpenParts } from "./open-handle.ts";
import type { Replacement } from "./window-log.ts";
import type { SessionContent, SessionModel, SessionsOptions } from "./session-options.ts";
import type { SharedParts } from "./shared-parts.ts";
import { messageDraft } from "./message-parts.ts";
import { labelSession, titleIn } from "./session-title.ts";
import { takeTurn } from "./take-turn.ts";
import type { TurnOutputSchema } from "./output-schema.ts";
import { streamTurn, type TurnStream } from "./turn-stream.ts";
import type { TurnHost } from "./turn-host.ts";
import type { WindowFacts } from "./window-facts.ts";

/** Holds one open session. `take-turn.ts` runs a turn; this class holds the state that outlasts a turn. */
export class SessionHandle implements Session, TurnHost {
  readonly restored: { readonly turns: number; readonly messages: number };
  readonly log: SessionLog;
  readonly options: SessionsOptions;
  readonly shared: SharedParts;
  readonly #emit: Emit | null;
  #model: SessionModel;
  #current: {
    readonly controller: AbortController;
    readonly emit: Emit | null;
    readonly taken: StoredRecord[];
  } | null = null;
  readonly #work = new Set<Promise<unknown>>();
  readonly #closing = new AbortController();
  readonly #onClose: () => void;
  #partialReply: PartialReply | null = null;
  readonly #compactionTokens: CompactionTokens;
  #summary: { readonly facts: WindowFacts; readonly changes: number; readonly id: string | null } | null = null;

  constructor(parts: OpenParts, log: SessionLog) {
    this.log = log;
    this.options = parts.options;
    this.shared = parts.shared;
    this.#model = parts.options.model;
    this.#onClose = parts.onClose;
    this.#compactionTokens = parts.compactionTokens;
    this.#emit = createEmit({ ref: log.ref, turnId: null }, [parts.options.onEvent]);
    this.restored = { turns: log.facts.userMessages, messages: log.messageCount };
  }

  get ref(): SessionRef {
    return this.log.ref;
  }

  get key(): string {
    return this.log.ref.key;
  }

  get sessionId(): string {
    return this.log.sessionId;
  }

  get entry(): SessionEntry {
    return this.log.entry;
  }

  get title(): string | null {
    return titleIn(this.log.entry);
  }

  get spend(): Spend {
    return readLearning(this.log.entry).spend;
  }

  get head(): SessionHead {
    return this.log.head;
  }

  get model(): SessionModel {
    return this.#model;
  }

  get interruptedTurn(): InterruptedTurn | null {
    const turn = this.#openTurn();
    return turn === null || this.#isRunning(turn)
      ? null
      : readInterruptedTurn(this.log, turn, this.shared.clock.nowMs());
  }

  get partialReply(): PartialReply | null {
    const partial = this.#partialReply;
    return this.interruptedTurn?.turnId === partial?.turnId ? partial : null;
  }

  /** Reads what was shown of the reply of an interrupted turn. Nothing is written. */
  async readPartialReply(): Promise<void> {
    const { store } = this.log;
    this.#partialReply = this.interruptedTurn === null ? null : await readPartial(store, this.ref, this.#emit);
  }

  get pendingApprovals(): readonly PendingApproval[] {
    const { turn } = this.log.head;
    return this.#current !== null || (turn !== null && this.#isRunning(turn))
      ? []
      : pendingApprovals(this.log, this.shared.clock.nowMs());
  }

  /** Only turns of this handle count, not those of other handles or processes. */
  get isInTurn(): boolean {
    return this.#current !== null;
  }

  get runningTurn(): OpenTurn | null {
    const turn = this.#openTurn();
    return turn === null || !this.#isRunning(turn) ? null : turn;
  }

  /** The open turn of this handle is excluded, because it is no foreign turn. */
  #openTurn(): OpenTurn | null {
    return this.#current === null ? this.log.head.turn : null;
  }

  #isRunning(turn: OpenTurn): boolean {
    return turn.leaseUntilMs > this.shared.clock.nowMs() && !isGone(turn, this.shared);
  }

  async runTurn<const Schema extends TurnOutputSchema = never>(
    input: SessionContent,
    options: RunTurnOptions<Schema> = {},
  ): Promise<TurnResult<Schema>> {
    assertKnownOptions<RunTurnOptions>("runTurn", options, turnTable);
    this.assertOpen();
    assertContent(input);
    const drafts = (): readonly RecordDraft[] => [messageDraft({ role: "user", content: input })];
    const { idempotencyKey = null, mentioned: isMentioned = true } = options;
    const take = (): Promise<TurnResult<Schema>> => takeTurn(this, { drafts, idempotencyKey, isMentioned }, options);
    return this.#track(assertFiles(this.log, input)?.then(take) ?? take());
  }

  async resume<const Schema extends TurnOutputSchema = never>(
    options: ResumeOptions<Schema> = {},
  ): Promise<TurnResult<Schema>> {
    assertKnownOptions<ResumeOptions>("resume", options, resumeTable);
    this.assertOpen();
    const { approvals, continueReply: continuesReply } = options;
    const input = { drafts: null, idempotencyKey: null, isMentioned: true, approvals, continuesReply };
    return this.#track(takeTurn(this, input, options));
  }

  streamTurn<const Schema extends TurnOutputSchema = never>(
    input: SessionContent,
    options: RunTurnOptions<Schema> = {},
  ): TurnStream<TurnResult<Schema>> {
    assertKnownOptions<RunTurnOptions>("streamTurn", options, turnTable);
    this.assertOpen();
    assertContent(input);
    return streamTurn((given) => this.runTurn(input, given), options, this.shared.clock);
  }

  attach(options: AttachOptions = {}): Promise<AttachedTurn | null> {
    assertKnownOptions<AttachOptions>("session.attach", options, attachTable);
    this.assertOpen();
    const parts = { options: this.options, shared: this.shared, compactionTokens: this.#compactionTokens };
    return attachTurn(this.ref, parts, [options.signal, this.closing]);
  }

  streamResume<const Schema extends TurnOutputSchema = never>(
    options: ResumeOptions<Schema> = {},
  ): TurnStream<TurnResult<Schema>> {
    assertKnownOptions<ResumeOptions>("streamResume", options, resumeTable);
    this.assertOpen();
    return streamTurn((given) => this.resume(given), options, this.shared.clock);
  }

  regenerate<const Schema extends TurnOutputSchema = never>(
    options: BranchTurnOptions<Schema> = {},
  ): Promise<TurnResult<Schema>> {
    return this.#track(regenerate(this, options));
  }

  edit<const Schema extends TurnOutputSchema = never>(
    recordId: string,
    content: SessionContent,
    options: BranchTurnOptions<Schema> = {},
  ): Promise<TurnResult<Schema>> {
    return this.#track(edit(this, recordId, content, options));
  }

  streamRegenerate<const Schema extends TurnOutputSchema = never>(
    options: BranchTurnOptions<Schema> = {},
  ): TurnStream<TurnResult<Schema>> {
    checkBranchTurn(this, "streamRegenerate", options);
    return streamTurn((given) => this.regenerate(given), options, this.shared.clock);
  }

  streamEdit<const Schema extends TurnOutputSchema = never>(
    recordId: string,
    content: SessionContent,
    options: BranchTurnOptions<Schema> = {},
  ): TurnStream<TurnResult<Schema>> {
    checkBranchTurn(this, "streamEdit", options);
    return streamTurn((given) => this.edit(recordId, content, given), options, this.shared.clock);
  }

  rewind(recordId: string | null): Promise<void> {
    return this.#track(rewind(this, recordId));
  }

  switchTo(recordId: string): Promise<void> {
    return this.#track(switchTo(this, recordId));
  }

  async rename(label: string): Promise<void> {
    await this.#track(labelSession(this, label));
  }

  async withdrawApproval(callId: string, words?: string): Promise<void> {
    await this.#track(withdrawApproval(this, callId, words));
  }

  branches(recordId: string): Promise<readonly SessionBranch[]> {
    return branches(this, recordId);
  }

  async append(drafts: readonly SessionDraft[], options: SessionAppendOptions = {}): Promise<AppendResult> {
    assertKnownOptions<SessionAppendOptions>("append", options, appendTable);
    assertArgument("append", "drafts", drafts, optionKinds.list);
    this.assertOpen();
    const { expectHead, ...rest } = options;
    return this.log.append(drafts, { ...rest, ...(expectHead === undefined ? {} : { expect: { head: expectHead } }) });
  }

  async messages(api: string = this.#model.chat.api): Promise<SessionMessages> {
    this.assertOpen();
    const { log, options, shared, closing: signal } = this;
    return readMessages({ log, options, shared, signal, model: this.#model, emit: this.#emit }, api);
  }

  async transcript(options: TranscriptOptions = {}): Promise<SessionTranscript> {
    assertKnownOptions<TranscriptOptions>("transcript", options, transcriptTable);
    this.assertOpen();
    const transcript = await readTranscript(this.log.store, this.ref, options);
    // Another process began a session under the key. `reload` throws SESSION_REPLACED, unless the session of this
    // handle is empty.
    if (transcript.sessionId !== this.sessionId) await this.log.reload();
    return transcript;
  }

  async setModel(model: SessionModel): Promise<void> {
    assertArgument("setModel", "model", model, modelKind);
    this.assertOpen();
    targetName(model.chat.api);
    this.#model = model;
    if (this.#current === null) await this.log.retarget(targetOf(model));
  }

  async refresh(): Promise<void> {
    this.assertOpen();
    await this.log.reload();
    await this.readPartialReply();
  }

  async reset(): Promise<void> {
    this.assertOpen();
    const { store } = this.log;
    await noteArchiving(store, this.ref, this.shared.clock);
    await resetSession(store, this.ref, { random: this.shared.random, keep: resetEntry });
    await this.log.acceptReplacement();
  }

  get replacement(): Replacement | null {
    return this.log.replacement;
  }

  async acceptReset(): Promise<void> {
    this.assertOpen();
    await this.log.acceptReplacement();
  }

  async close(): Promise<void> {
    const reason = new ThroughlineError("ABORTED", "The session was closed.");
    this.#closing.abort(reason);
    this.#current?.controller.abort(reason);
    await Promise.allSettled(this.#work);
    this.#onClose();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  assertOpen(): void {
    if (!this.#closing.signal.aborted) return;
    throw new ThroughlineError("SESSION_CLOSED", "The session was closed.", { outcome: "not-applied" });
  }

  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  enterTurn(controller: AbortController, emit: Emit | null): readonly StoredRecord[] {
    const taken: StoredRecord[] = [];
    this.#current = { controller, emit, taken };
    return taken;
  }

  leaveTurn(): void {
    this.#current = null;
  }

  track(work: Promise<unknown>): void {
    const tracked = work.finally(() => this.#work.delete(tracked));
    this.#work.add(tracked);
  }

  #track<Result>(work: Promise<Result>): Promise<Result> {
    const settled = work.then(
      () => null,
      () => null,
    );
    this.track(settled);
    return work;
  }

  async openOther(ref: SessionRef, signal?: AbortSignal): Promise<SessionHandle> {
    const { options, shared } = this;
    const parts = { options, shared, compactionTokens: this.#compactionTokens, onClose: () => {} };
    const other = await openHandle(ref, parts, (given, log) => new SessionHandle(given, log), signal);
    await other.setModel(this.#model);
    return other;
  }

  /** The id is cached, because computing it walks the history. The number of window changes shows when it is stale. */
  summaryId(): string | null {
    const { facts } = this.log;
    const { changes } = facts;
    if (changes === 0) return null;
    if (this.#summary?.facts !== facts || this.#summary.changes !== changes)
      this.#summary = { facts, changes, id: this.log.history.context().summaryId };
    return this.#summary.id;
  }

  onReplaced({ sessionId, newSessionId }: Replacement): void {
    (this.#current?.emit ?? this.#emit)?.({ name: "session.replaced", sessionId, newSessionId });
  }

  onRecord(record: StoredRecord): void {
    const current = this.#current;
    if (record.type === "message" && !record.side) current?.taken.push(record);
    (current?.emit ?? this.#emit)?.({ name: "record.appended", record });
  }
}
