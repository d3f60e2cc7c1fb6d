import { hasErrorCode, ThroughlineError, type RecordDraft, type SessionRef } from "@throughline/core";
import { keyedTurnId, readInterruptedTurn, type Beginning } from "./begin-turn.ts";
import { readQueueSettings } from "@throughline/policy/internal";
import { beginWhenFree, type BeginWhenFreeOptions } from "./begin-when-free.ts";
import { branchSession } from "./branch-session.ts";
import { replayedTurn } from "./finished-turn.ts";
import { notRunResults } from "./left-results.ts";
import { settledKeyedTurn } from "./keyed-turn.ts";
import { runOpenTurn } from "./run-open-turn.ts";
import { resetIfDue } from "./reset-due.ts";
import { interruptedResult } from "./run-tools.ts";
import type { RunTurnOptions, Turn } from "./turn.ts";
import { createEmit, type Emit } from "./session-event.ts";
import { targetOf } from "./session-log.ts";
import type { TurnHost, TurnInput } from "./turn-host.ts";
import { wireTools } from "./wire-tools.ts";
import { turnSettings } from "./turn-settings.ts";
import { abortInterrupted, plainQueue, type QueueHolder, type TakenWords, type WaitingTurn } from "./turn-queue.ts";
import { abortedBefore, busyHere, TurnWait } from "./turn-wait.ts";

/** Runs one turn, from waiting in the queue to its end. */
export async function takeTurn(handle: TurnHost, input: TurnInput, options: RunTurnOptions): Promise<Turn> {
  handle.assertOpen();
  if (options.signal?.aborted === true) throw abortedBefore(options.signal);
  const { shared, ref, log } = handle;
  const queue = shared.queueOf(ref);
  const turn = newTurn(handle, input, options);
  const { turnId, emit } = turn;
  const { clock, owners } = shared;
  const signals = [options.signal, handle.closing];
  const wait = new TurnWait({ clock, owners, signals, waitMs: options.waitMs });
  const isBusy = queue.holder !== null;
  if (queue.holder !== null) {
    if (options.whenBusy === "reject") throw busyHere(queue.holder, shared.owners.self);
    if (options.whenBusy === "branch") {
      await log.catchUp();
      return branchOff(handle, input, options, emit);
    }
    emit?.({ name: "turn.queued", owner: null, leaseUntilMs: null });
  }
  const waiting = waitingTurn(handle, input, options, turnId);
  if (isBusy && waiting.settings.behavior === "interrupt") queue.interrupt();
  const place = await wait.enter(queue, waiting);
  if (place.kind === "joined") return { ...place.turn, joined: true };
  try {
    const { behavior, debounceMs } = waiting.settings;
    if (isBusy && debounceMs > 0) await wait.debounce(queue, debounceMs);
    const isCollecting = isBusy && (behavior === "collect" || behavior === "interrupt") && waiting.drafts !== null;
    const others = [
      ...(waiting.drafts === null ? [] : [queue.takeLeftOut()]),
      ...(isCollecting ? [queue.takeWaiting()] : []),
    ];
    const isReset = await resetIfDue(handle, input, emit);
    const own = isReset ? newTurn(handle, input, options) : turn;
    const opening = { handle, options, wait, holder: waiting.holder, ...own };
    queue.running = openTurn({ ...opening, input: withWords(input, others) });
    for (const words of others) words.join(queue.running);
    return await queue.running;
  } catch (error) {
    if (!(error instanceof BranchOff)) throw error;
  } finally {
    place.leave();
  }
  return branchOff(handle, input, options, emit);
}

/** Turns with options of their own cannot share a turn, so another turn may not take over their messages. */
function waitingTurn(
  { shared: { clock }, log: { entry } }: TurnHost,
  { drafts, idempotencyKey, isMentioned }: TurnInput,
  options: RunTurnOptions,
  turnId: string,
): WaitingTurn {
  const arrivedAtMs = clock.nowMs();
  const { model, system, tools, maxSteps, leaseMs, whenBusy } = options;
  const settings = whenBusy === undefined ? readQueueSettings(entry) : plainQueue;
  const hasOwn = [model, system, tools, maxSteps, leaseMs].some((option) => option !== undefined);
  const canJoin = idempotencyKey === null && isMentioned && !hasOwn;
  return { holder: { turnId, sinceMs: arrivedAtMs }, drafts: canJoin ? drafts : null, settings, arrivedAtMs };
}

/** The order is that of arrival: messages left out before, the turn's own message, then messages that arrived later. */
function withWords(input: TurnInput, [leftOut, later]: readonly TakenWords[]): TurnInput {
  const { drafts } = input;
  if (drafts === null || leftOut === undefined) return input;
  return { ...input, drafts: () => [...leftOut.drafts, ...drafts(), ...(later?.drafts ?? [])] };
}

/** With a key the turn id depends on the session id, so a reset changes it. */
function newTurn(
  { shared, ref, sessionId, options: { onEvent } }: TurnHost,
  { idempotencyKey }: TurnInput,
  options: RunTurnOptions,
): Pick<OpeningContext, "turnId" | "emit"> {
  const turnId = idempotencyKey === null ? shared.random.uuid() : keyedTurnId(sessionId, idempotencyKey);
  return { turnId, emit: createEmit({ ref, turnId }, [onEvent, options.onEvent]) };
}

interface OpeningContext {
  readonly handle: TurnHost;
  readonly holder: QueueHolder;
  readonly input: TurnInput;
  readonly options: RunTurnOptions;
  readonly turnId: string;
  readonly emit: Emit | null;
  readonly wait: TurnWait;
}

/** The turn must first leave the queue. The error then makes the caller continue in a branch. */
class BranchOff extends Error {}

async function openTurn(context: OpeningContext): Promise<Turn> {
  const { handle, input, options, turnId, emit, wait } = context;
  handle.assertOpen();
  const { log, shared } = handle;
  const settings = turnSettings(handle.model, handle.options, options);
  // Tools whose names the provider could not distinguish are refused before any record is written.
  wireTools(settings.tools.definitions, settings.model.chat.api);
  await log.retarget(targetOf(settings.model));
  if (input.drafts === null) await log.catchUp();
  const controller = new AbortController();
  const taken = handle.enterTurn(controller, emit);
  try {
    const resumes = input.drafts === null ? (input.resumes ?? lastTurnId(handle)) : null;
    const beginning = await beginOrBranch(options, {
      log,
      clock: shared.clock,
      owners: shared.owners,
      abandoned: shared.abandoned,
      wait,
      whenBusy: options.whenBusy === "branch" ? "reject" : options.whenBusy,
      turnId,
      leaseMs: settings.leaseMs,
      drafts: input.drafts ?? (() => openResults(handle)),
      leftResults: () => (input.drafts === null ? [] : notRunResults(log.facts)),
      resumes,
      idempotencyKey: input.idempotencyKey,
      signal: options.signal,
      emit,
    });
    if (beginning.kind === "replayed") {
      handle.leaveTurn();
      return await goOn(context, beginning);
    }
    const { fence, result } = beginning;
    const firstSeq = result.records[0]?.seq ?? 0;
    context.holder.controller = controller;
    if (context.holder.isInterrupted === true) abortInterrupted(controller);
    emit?.({ name: "turn.opened", fence, resumes });
    return await runOpenTurn({ ...context, settings, fence, firstSeq, controller, taken });
  } finally {
    handle.leaveTurn();
  }
}

async function beginOrBranch(
  { whenBusy }: RunTurnOptions,
  begin: BeginWhenFreeOptions,
): ReturnType<typeof beginWhenFree> {
  try {
    return await beginWhenFree(begin);
  } catch (error) {
    if (whenBusy === "branch" && hasErrorCode(error, "SESSION_BUSY")) throw new BranchOff();
    throw error;
  }
}

/** An earlier turn has this key. Its result is returned, or the turn is resumed once no other process runs it. */
async function goOn(
  { input, turnId, ...context }: OpeningContext,
  beginning: Extract<Beginning, { kind: "replayed" }>,
): Promise<Turn> {
  const { handle, options, emit, wait } = context;
  const { log, shared } = handle;
  const keyed = await settledKeyedTurn({
    log,
    clock: shared.clock,
    owners: shared.owners,
    abandoned: shared.abandoned,
    wait,
    whenBusy: options.whenBusy === "branch" ? "reject" : options.whenBusy,
    turnId,
    firstSeq: beginning.result.records[0]?.seq ?? 1,
    emit,
  });
  const done = replayedTurn(log, turnId, keyed, handle.options.holdBack ?? null);
  if (done !== null) return done;
  const next = shared.random.uuid();
  const again: TurnInput = { ...input, drafts: null, resumes: turnId, idempotencyKey: null };
  return openTurn({ ...context, input: again, turnId: next });
}

async function branchOff(
  handle: TurnHost,
  input: TurnInput,
  options: RunTurnOptions,
  emit: Emit | null,
): Promise<Turn> {
  const { log, shared, ref } = handle;
  const { turn } = log.head;
  const target: SessionRef = await branchSession({
    store: log.store,
    ref,
    random: shared.random,
    beforeTurnId: turn?.turnId ?? null,
    signal: options.signal,
  });
  emit?.({ name: "turn.branched", from: ref });
  const branch = await handle.openOther(target, options.signal);
  try {
    return await takeTurn(branch, input, { ...options, whenBusy: "reject" });
  } finally {
    await branch.close();
  }
}

/** @throws {ThroughlineError} INPUT_INVALID when the last turn is done, or there is none */
function lastTurnId({ log }: TurnHost): string {
  const { turn } = log.facts;
  const open = log.head.turn;
  if (open !== null) return readInterruptedTurn(log, open).turnId;
  if (turn !== null && turn.mark.state !== "done") return turn.mark.turnId;
  throw new ThroughlineError("INPUT_INVALID", "There is no turn to resume: the last one is done.");
}

/** Answers calls that have no stored result. The result informs the model whether the call may have run. */
function openResults({ log: { facts } }: TurnHost): readonly RecordDraft[] {
  return [...facts.openCalls].map(([id, name]) => interruptedResult(id, name, facts.interruptedCall(id)));
}
