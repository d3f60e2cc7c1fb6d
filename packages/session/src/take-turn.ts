import { hasErrorCode, type Message, type RecordDraft, type SessionRef, type StoredRecord } from "@throughline/core";
import { createAheadCounter } from "@throughline/tokens/internal";
import { acquireTurn, type AcquiredTurn } from "./acquire.ts";
import { runAfterTurnSteps } from "./after-turn.ts";
import { keyedTurnId } from "./begin-turn.ts";
import { branchSession } from "./branch-session.ts";
import type { CallFacts } from "./call-record.ts";
import { finishedTurn, replayedTurn, TurnClose, type TurnEnd } from "./close.ts";
import { continueDrafts } from "./continue-reply.ts";
import { BranchOff, enqueueTurn } from "./enqueue.ts";
import { answersOf, refusedResults, resumedResults, resumedTurnId } from "./resume-calls.ts";
import { restoreHistory } from "./restore-history.ts";
import { TurnRun } from "./run.ts";
import { createEmit, type Emit } from "./session-event.ts";
import { targetOf } from "./session-log.ts";
import { titleByModel } from "./session-title.ts";
import { LiveTurn } from "./live-turn.ts";
import { PartialWriter } from "./partial-writer.ts";
import type { TurnHost, TurnInput } from "./turn-host.ts";
import { TurnLease } from "./turn-lease.ts";
import { TurnLedger } from "./turn-ledger.ts";
import { abortInterrupted, type QueueHolder } from "./turn-queue.ts";
import { turnSettings, type TurnSettings } from "./turn-settings.ts";
import { abortedBefore, TurnWait } from "./turn-wait.ts";
import type { TurnOutputSchema } from "./output-schema.ts";
import type { RunTurnOptions, Turn, TurnResult } from "./turn.ts";
import { wireTools } from "./wire-tools.ts";

/** Takes one turn through its phases: enqueue, acquire, run and close. */
export async function takeTurn<Schema extends TurnOutputSchema>(
  host: TurnHost,
  input: TurnInput,
  options: RunTurnOptions<Schema>,
): Promise<TurnResult<Schema>> {
  // `TurnOutput` gives a turn that is done the checked answer, and throws when there is none.
  return (await takeOneTurn(host, input, options)) as TurnResult<Schema>;
}

async function takeOneTurn(host: TurnHost, input: TurnInput, options: RunTurnOptions): Promise<Turn> {
  host.assertOpen();
  if (options.signal?.aborted === true) throw abortedBefore(options.signal);
  const { clock, owners } = host.shared;
  const turn = newTurn(host, input, options);
  const wait = new TurnWait({
    clock,
    owners,
    signals: [options.signal, host.closing],
    waitMs: options.waitMs,
    whenBusy: options.whenBusy === "branch" ? "reject" : options.whenBusy,
    emit: turn.emit,
  });
  const common = { host, options, wait };
  try {
    return await enqueueTurn({
      ...common,
      ...turn,
      input,
      run: ({ isReset, ...place }) =>
        acquireAndRun({ ...common, ...(isReset ? newTurn(host, input, options) : turn), ...place }),
    });
  } catch (error) {
    if (!(error instanceof BranchOff)) throw error;
  }
  return branchOff(host, input, options, turn.emit);
}

/** With a key the turn id depends on the session id, so a reset changes it. */
function newTurn(
  { shared, ref, sessionId, options: { onEvent } }: TurnHost,
  { idempotencyKey }: TurnInput,
  options: RunTurnOptions,
): Pick<TurnContext, "turnId" | "emit" | "live"> {
  const live = new LiveTurn();
  const turnId = idempotencyKey === null ? shared.random.uuid() : keyedTurnId(sessionId, idempotencyKey);
  return { turnId, live, emit: createEmit({ ref, turnId }, [onEvent, options.onEvent, live.takeEvent]) };
}

interface TurnContext {
  readonly host: TurnHost;
  readonly holder: QueueHolder;
  readonly input: TurnInput;
  readonly options: RunTurnOptions;
  readonly turnId: string;
  readonly emit: Emit | null;
  /** Gives the events to readers that attach. */
  readonly live: LiveTurn;
  readonly wait: TurnWait;
}

async function acquireAndRun(context: TurnContext): Promise<Turn> {
  const { host, input, options, emit, holder } = context;
  host.assertOpen();
  const { log } = host;
  if (input.drafts === null) await log.catchUp();
  const settings = turnSettings(host.model, host.options, options, recordedCall(host, input));
  // Tools whose names the provider could not distinguish are refused before any record is written.
  wireTools(settings.tools.definitions, settings.model.chat.api);
  await log.retarget(targetOf(settings.model));
  const controller = new AbortController();
  const taken = host.enterTurn(controller, emit);
  try {
    const acquired = await acquire(context, settings);
    if (acquired.kind === "answered")
      return await withOutput(
        replayedTurn(log, acquired.turnId, acquired.keyed, host.options.holdBack ?? null),
        settings,
      );
    holder.controller = controller;
    if (holder.isInterrupted === true) abortInterrupted(controller);
    emit?.({ name: "turn.opened", fence: acquired.fence, resumes: acquired.resumes });
    return await context.live.run(log.store, host.ref, acquired.turnId, async () =>
      withOutput(await runAndClose({ ...context, ...acquired, settings, controller, taken }), settings),
    );
  } finally {
    host.leaveTurn();
  }
}

/** Returns the last call of the turn that the input resumes. */
function recordedCall({ log }: TurnHost, { drafts }: TurnInput): CallFacts | null {
  const { lastCall, turn } = log.facts;
  return drafts === null && lastCall?.turnId === turn?.mark.turnId ? lastCall : null;
}

function withOutput(turn: Turn, { output }: TurnSettings): Turn | Promise<Turn> {
  return output === null ? turn : output.resultOf(turn);
}

async function acquire(context: TurnContext, settings: TurnSettings): Promise<AcquiredTurn> {
  const { host, input, options, turnId, emit, wait } = context;
  const { log, shared } = host;
  const resuming = {
    drafts: (recovered: RecordDraft | null) => [
      ...resumedResults(host, input, settings),
      ...(input.continuesReply === true ? continueDrafts(log, recovered) : []),
    ],
    leftResults: () => [],
  };
  const opening =
    input.drafts === null
      ? { ...resuming, resumes: resumedTurnId(host, input) }
      : { drafts: input.drafts, leftResults: () => refusedResults(host, options), resumes: null };
  try {
    return await acquireTurn({
      log,
      shared,
      wait,
      turnId,
      leaseMs: settings.leaseMs,
      idempotencyKey: input.idempotencyKey,
      signal: options.signal,
      emit,
      ...opening,
      ...input.branch,
      resuming,
    });
  } catch (error) {
    if (options.whenBusy === "branch" && hasErrorCode(error, "SESSION_BUSY")) throw new BranchOff();
    throw error;
  }
}

interface RunContext
  extends TurnContext, Pick<Extract<AcquiredTurn, { kind: "begun" }>, "fence" | "firstSeq" | "resumes"> {
  readonly settings: TurnSettings;
  readonly controller: AbortController;
  /** The list grows while the turn runs. */
  readonly taken: readonly StoredRecord[];
}

/** Renews the lease of an open turn while it runs, and closes the turn in every case. */
async function runAndClose(context: RunContext): Promise<Turn> {
  const { host, input, options, settings, turnId, fence, emit, controller } = context;
  const { log, shared } = host;
  const { clock } = shared;
  const { leaseMs, model } = settings;
  const turn = new TurnLease({ log, clock, turnId, fence, leaseMs, emit, controller, signal: options.signal });
  const ledger = new TurnLedger(log);
  const phases = { log, ledger, settings, clock, turn, emit };
  const partial = options.onDelta === undefined ? null : partialWriter(host, turn, emit);
  const close = new TurnClose(phases);
  try {
    const counter = createAheadCounter(
      await shared.estimator.counterFor({ provider: model.chat.provider, modelId: model.modelId }),
    );
    const windowTokens = await shared.windowOf(model, emit, controller.signal);
    ledger.windowTokens = windowTokens;
    await restoreHistory(log, { settings, counter, learning: ledger.learning, windowTokens, emit });
    const calls: CallFacts[] = [];
    const run = new TurnRun(
      {
        ...phases,
        counter,
        calls,
        summaryId: () => host.summaryId(),
        isMentioned: input.isMentioned,
        steeredDrafts: () => shared.queueOf(host.ref).takeSteered(),
        answers: context.resumes === null ? null : answersOf(host, input, settings),
        onDelta: options.onDelta === undefined ? null : context.live.shows(options.onDelta),
        partial,
      },
      close,
    );
    const ended = endedTurn(context, await run.run(), ledger, calls);
    if (close.title !== null && settings.titles === "model")
      host.track(titleByModel({ host, title: close.title, answer: ended.text, emit }));
    // The steps after a turn process its answer, and a denied or a waiting turn has none yet.
    if (ended.denial === null && ended.outcome !== "waiting")
      host.track(runAfterTurnSteps({ host, settings, turn: ended, counter, emit }));
    return ended;
  } catch (error) {
    if (turn.lostBecause !== null) throw turn.lostBecause;
    await closeFailed(context, turn, close, error);
    throw error;
  } finally {
    turn.release();
    partial?.stop();
    if (turn.isClosed) partial?.end();
  }
}

function partialWriter(host: TurnHost, { turnId, fence }: TurnLease, emit: Emit | null): PartialWriter | null {
  const { log, options, shared, ref, sessionId } = host;
  const { clock } = shared;
  const { partials } = log.store;
  if (partials === undefined || options.partials === false) return null;
  const redact = options.redactBeforeAppend ?? null;
  return new PartialWriter({
    partials,
    ref,
    sessionId,
    turnId,
    fence,
    clock,
    redact,
    emit,
    track: (work) => host.track(work),
  });
}

function endedTurn(context: RunContext, end: TurnEnd, ledger: TurnLedger, calls: readonly CallFacts[]): Turn {
  const { host, turnId, emit, taken, firstSeq, settings } = context;
  emit?.({ name: "turn.closed", outcome: end.outcome });
  return finishedTurn(
    {
      ...end,
      turnId,
      ref: host.ref,
      messages: taken.flatMap(({ seq, record }) => (seq < firstSeq ? [] : [record["message"] as Message])),
      calls,
      ...ledger.used,
      gauge: ledger.now(),
      replayed: false,
      joined: false,
    },
    settings.holdBack,
  );
}

/** If the close fails as well, the turn counts as abandoned, so that the next turn need not wait for its lease. */
async function closeFailed(
  { host, turnId, emit }: RunContext,
  turn: TurnLease,
  close: TurnClose,
  error: unknown,
): Promise<void> {
  try {
    if (!turn.isClosed && !turn.isCloseUnknown) await close.failed(error);
  } catch (cause) {
    emit?.({ name: "step.failed", step: "close", cause });
  }
  if (!turn.isClosed) host.shared.abandoned.add(turnId);
  emit?.({ name: "turn.closed", outcome: "failed" });
}

async function branchOff(host: TurnHost, input: TurnInput, options: RunTurnOptions, emit: Emit | null): Promise<Turn> {
  const { log, shared, ref } = host;
  await log.catchUp();
  const { turn } = log.head;
  const target: SessionRef = await branchSession({
    store: log.store,
    ref,
    random: shared.random,
    beforeTurnId: turn?.turnId ?? null,
    signal: options.signal,
  });
  emit?.({ name: "turn.branched", from: ref });
  const branch = await host.openOther(target, options.signal);
  try {
    return await takeOneTurn(branch, input, { ...options, whenBusy: "reject" });
  } finally {
    await branch.close();
  }
}
