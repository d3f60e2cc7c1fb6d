import type { Message, StoredRecord } from "@throughline/core";
import type { TokenCounter } from "@throughline/tokens/internal";
import { createAheadCounter } from "@throughline/tokens/internal";
import type { Turn, RunTurnOptions } from "./turn.ts";
import { runAfterTurnSteps } from "./after-turn.ts";
import { finishedTurn } from "./finished-turn.ts";
import { HeldTurn } from "./held-turn.ts";
import { restoreHistory } from "./restore-history.ts";
import type { Emit } from "./session-event.ts";
import type { TurnHost, TurnInput } from "./turn-host.ts";
import { TurnLedger } from "./turn-ledger.ts";
import { TurnRun, type TurnEnd } from "./turn-run.ts";
import type { TurnSettings } from "./turn-settings.ts";

export interface RunOptions {
  readonly handle: TurnHost;
  readonly options: RunTurnOptions;
  readonly turnId: string;
  readonly emit: Emit | null;
  readonly settings: TurnSettings;
  readonly fence: number;
  readonly controller: AbortController;
  /** The turn's records begin here. Records that were read before belong to other turns. */
  readonly firstSeq: number;
  /** The list grows while the turn runs. */
  readonly taken: readonly StoredRecord[];
  readonly input: TurnInput;
}

/** Renews the lease of an open turn while it runs, and closes the turn in every case. */
export async function runOpenTurn(context: RunOptions): Promise<Turn> {
  const { handle, options, settings, turnId, fence, emit, controller } = context;
  const { log, shared } = handle;
  const ledger = new TurnLedger(log);
  const held = new HeldTurn({
    log,
    clock: shared.clock,
    turnId,
    fence,
    leaseMs: settings.leaseMs,
    emit,
    controller,
    signal: options.signal,
  });
  const model = { provider: settings.model.chat.provider, modelId: settings.model.modelId };
  let run: TurnRun | null = null;
  try {
    const counter = createAheadCounter(await shared.estimator.counterFor(model));
    ledger.windowTokens = await shared.windowOf(settings.model, emit, controller.signal);
    await restoreHistory(log, {
      settings,
      counter,
      learning: ledger.learning,
      windowTokens: ledger.windowTokens,
      emit,
    });
    run = new TurnRun({
      log,
      ledger,
      settings,
      counter,
      clock: shared.clock,
      turn: held,
      summaryId: () => handle.summaryId(),
      isMentioned: context.input.isMentioned,
      steeredDrafts: () => shared.queueOf(handle.ref).takeSteered(),
      onDelta: options.onDelta ?? null,
      emit,
    });
    const end = await run.run();
    return ended(context, end, ledger, counter);
  } catch (error) {
    const cause = held.lostBecause ?? error;
    if (held.lostBecause === null) await settle(context, held, run, error);
    throw cause;
  } finally {
    held.release();
  }
}

function ended(context: RunOptions, end: TurnEnd, ledger: TurnLedger, counter: TokenCounter): Turn {
  const { handle, turnId, emit, taken, firstSeq, settings } = context;
  emit?.({ name: "turn.closed", outcome: end.outcome });
  const turn = finishedTurn(
    {
      turnId,
      ref: handle.ref,
      outcome: end.outcome,
      denial: end.denial,
      messages: taken.flatMap(({ seq, record }) => (seq < firstSeq ? [] : [record["message"] as Message])),
      calls: end.calls,
      usage: ledger.used,
      gauge: ledger.now(),
      replayed: false,
      joined: false,
    },
    settings.holdBack,
  );
  // A denied turn got no answer, so the steps after a turn have nothing to process.
  if (end.denial === null) handle.track(runAfterTurnSteps({ handle, settings, turn, counter, emit }));
  return turn;
}

/**
 * Closes a failed turn as failed. If that fails as well, the turn counts as abandoned, so that the next turn need not
 * wait for its lease.
 */
async function settle(
  { handle, turnId, emit }: RunOptions,
  held: HeldTurn,
  run: TurnRun | null,
  error: unknown,
): Promise<void> {
  try {
    if (run !== null && !held.isClosed && !held.isCloseUnknown) await run.closeFailed(error);
  } catch (cause) {
    emit?.({ name: "step.failed", step: "close", cause });
  }
  if (!held.isClosed) handle.shared.abandoned.add(turnId);
  emit?.({ name: "turn.closed", outcome: "failed" });
}
