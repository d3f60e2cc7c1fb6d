import type { OpenTurn } from "@throughline/core";
import { isUnknown } from "@throughline/core/internal";
import { beginTurn, type Beginning, type BeginOptions } from "./begin-turn.ts";
import type { TurnOwners } from "./turn-owners.ts";
import type { TurnWait } from "./turn-wait.ts";

export interface BeginWhenFreeOptions extends BeginOptions {
  readonly abandoned: Set<string>;
  readonly wait: TurnWait;
  /** Sets how to react to a turn that is open elsewhere. @default "queue" for a turn of this process, else "reject" */
  readonly whenBusy: WhenBusy | undefined;
}

/** `queue` waits until the other turn ends, and `reject` throws SESSION_BUSY. */
export type WhenBusy = "queue" | "reject";

/**
 * Opens the turn. When `whenBusy` allows it, first waits for a turn that is open elsewhere.
 *
 * @throws {ThroughlineError} SESSION_BUSY, ABORTED, and what the store throws
 */
export async function beginWhenFree(options: BeginWhenFreeOptions): Promise<Exclude<Beginning, { kind: "busy" }>> {
  const { emit, wait, owners, whenBusy } = options;
  let isReported = false;
  for (;;) {
    const beginning = await beginOrAbandon(options);
    if (beginning.kind !== "busy") return beginning;
    const { turn, error } = beginning;
    if (!waitsFor(turn, owners, whenBusy)) throw error;
    if (!isReported)
      emit?.({ name: "turn.queued", owner: turn?.owner ?? null, leaseUntilMs: turn?.leaseUntilMs ?? null });
    isReported = true;
    await wait.pause(turn, error);
  }
}

export function waitsFor(turn: OpenTurn | null, owners: TurnOwners, whenBusy: WhenBusy | undefined): boolean {
  const isOwn = turn !== null && owners.stateOf(turn.owner) === "self";
  return whenBusy === "queue" || (whenBusy === undefined && isOwn);
}

/**
 * When the result of the opening append is unknown, the turn may be open without a process that runs it. It is recorded
 * as abandoned, so that it does not block later turns.
 */
async function beginOrAbandon(options: BeginWhenFreeOptions): Promise<Beginning> {
  const { abandoned, turnId } = options;
  try {
    const beginning = await beginTurn(options);
    if (beginning.kind === "begun") abandoned.delete(turnId);
    return beginning;
  } catch (error) {
    if (isUnknown(error)) abandoned.add(turnId);
    throw error;
  }
}
