import { type QueueSettings, readQueueSettings } from "@throughline/policy/internal";
import { resetIfDue } from "./reset-due.ts";
import type { Emit } from "./session-event.ts";
import type { TurnHost, TurnInput } from "./turn-host.ts";
import { plainQueue, type QueueHolder, type TakenWords, type WaitingTurn } from "./turn-queue.ts";
import { busyHere, type TurnWait } from "./turn-wait.ts";
import type { RunTurnOptions, Turn } from "./turn.ts";

/** The turn must first leave the queue. The error then makes the caller continue in a branch. */
export class BranchOff extends Error {}

export interface EnqueueContext {
  readonly host: TurnHost;
  readonly input: TurnInput;
  readonly options: RunTurnOptions;
  readonly turnId: string;
  readonly emit: Emit | null;
  readonly wait: TurnWait;
  /** Runs the turn with its own message and those that it took over. `isReset` is true in a new session. */
  readonly run: (turn: {
    readonly input: TurnInput;
    readonly holder: QueueHolder;
    readonly isReset: boolean;
  }) => Promise<Turn>;
}

/**
 * Waits until no other turn of this process runs in the session, and runs the turn. By the entry's queue mode, the turn
 * takes over the messages of others, or another turn takes over its message.
 *
 * @throws {ThroughlineError} SESSION_BUSY, ABORTED
 * @throws {BranchOff} when the caller wants a branch rather than wait
 */
export async function enqueueTurn(context: EnqueueContext): Promise<Turn> {
  const { host, input, options, emit, wait, run } = context;
  const queue = host.shared.queueOf(host.ref);
  const isBusy = queue.holder !== null;
  if (queue.holder !== null) {
    if (options.whenBusy === "reject") throw busyHere(queue.holder, host.shared.owners.self);
    if (options.whenBusy === "branch") throw new BranchOff();
    emit?.({ name: "turn.queued", owner: null, leaseUntilMs: null });
  }
  const waiting = waitingTurn(context);
  const { behavior, debounceMs } = waiting.settings;
  if (isBusy && behavior === "interrupt") queue.interrupt();
  const place = await wait.enter(queue, waiting);
  if (place.kind === "joined") return { ...place.turn, joined: true };
  try {
    if (isBusy && debounceMs > 0) await wait.debounce(queue, debounceMs);
    const isCollecting = isBusy && (behavior === "collect" || behavior === "interrupt") && waiting.drafts !== null;
    const others = [
      ...(waiting.drafts === null ? [] : [queue.takeLeftOut()]),
      ...(isCollecting ? [queue.takeWaiting()] : []),
    ];
    const isReset = await resetIfDue(host, input, emit);
    queue.running = run({ input: withWords(input, others), holder: waiting.holder, isReset });
    for (const words of others) words.join(queue.running);
    return await queue.running;
  } finally {
    place.leave();
  }
}

/** Turns with options of their own cannot share a turn, so another turn may not take over their messages. */
function waitingTurn({ host, input, options, turnId }: EnqueueContext): WaitingTurn {
  const arrivedAtMs = host.shared.clock.nowMs();
  const { drafts, idempotencyKey, isMentioned, branch } = input;
  const { model, system, tools, toolChoice, output, maxSteps, leaseMs } = options;
  const settings = queueSettings(host, options);
  const hasOwn = [model, system, tools, toolChoice, output, maxSteps, leaseMs].some((option) => option !== undefined);
  const canJoin = idempotencyKey === null && isMentioned && !hasOwn && branch === undefined;
  return { holder: { turnId, sinceMs: arrivedAtMs }, drafts: canJoin ? drafts : null, settings, arrivedAtMs };
}

function queueSettings(host: TurnHost, { queue, whenBusy }: RunTurnOptions): QueueSettings {
  if (queue !== undefined) return { ...plainQueue, behavior: queue };
  return whenBusy === undefined ? readQueueSettings(host.log.entry) : plainQueue;
}

/** The order is that of arrival: messages left out before, the turn's own message, then messages that arrived later. */
function withWords(input: TurnInput, [leftOut, later]: readonly TakenWords[]): TurnInput {
  const { drafts } = input;
  if (drafts === null || leftOut === undefined) return input;
  return { ...input, drafts: () => [...leftOut.drafts, ...drafts(), ...(later?.drafts ?? [])] };
}
