import { isColumnText } from "./column-text.ts";
import { refused } from "./refused.ts";
import { quote } from "./session-id.ts";
import { ThroughlineError } from "./throughline-error.ts";
import { sessionBusy } from "./turn-holder.ts";

/**
 * Describes the one open turn of a session. A turn holds a lease and a number, its fence: the newest number wins. No
 * lock is held while a model runs. A writer that returns after its lease expired and another turn began is fenced off.
 */
export interface OpenTurn {
  /** States the id of the turn, which its records carry. */
  readonly turnId: string;
  /** Names the holder for people: host, process, name. */
  readonly owner: string;
  /** States when the lease ends unless it is renewed, in milliseconds since 1970. */
  readonly leaseUntilMs: number;
  /** States the number of the lease. */
  readonly fence: number;
}

/** Describes what an append does to the session's turn: opens, renews or closes it. */
export type TurnRequest =
  /** Opens a turn. `fence` is the session's fence plus one. Refused while another turn's lease runs. */
  | {
      readonly action: "open";
      /** States the id of the new turn. */
      readonly turnId: string;
      /** Names the holder of the turn for people. */
      readonly owner: string;
      /** States when the lease ends unless it is renewed, in milliseconds since 1970. */
      readonly leaseUntilMs: number;
      /** States the number of the lease: the session's fence plus one. */
      readonly fence: number;
    }
  /** Prolongs the lease of the open turn. */
  | {
      readonly action: "renew";
      /** States the new end of the lease, in milliseconds since 1970. */
      readonly leaseUntilMs: number;
      /** States the number of the lease that the caller holds. */
      readonly fence: number;
    }
  /** Belongs to the open turn, or ends the turn with this append. */
  | {
      /** States the effect: `within` leaves the turn open, `close` ends it. */
      readonly action: "within" | "close";
      /** States the number of the lease that the caller holds. */
      readonly fence: number;
    };

export interface TurnState {
  readonly fence: number;
  readonly turn: OpenTurn | null;
}

/**
 * Returns the turn state after an append with this request, or throws the reason why the append is refused. Every store
 * applies this rule in the same statement, or under the same lock, as the append. `nowMs` is the store's clock.
 *
 * An append without a request passes if no turn is open or the lease of the open turn has expired. An append of side
 * records only always passes. Background work therefore neither waits for a turn nor breaks one.
 * @throws {ThroughlineError} SESSION_BUSY, TURN_FENCED, INPUT_INVALID
 */
export function nextTurnState(
  state: TurnState,
  request: TurnRequest | undefined,
  append: { readonly hasMainRecord: boolean; readonly nowMs: number },
): TurnState {
  const running = state.turn !== null && state.turn.leaseUntilMs > append.nowMs ? state.turn : null;
  if (request === undefined) {
    if (running !== null && append.hasMainRecord) throw sessionBusy(running, append.nowMs);
    return state;
  }
  if (request.action === "open") {
    if (running !== null) throw sessionBusy(running, append.nowMs);
    if (request.fence !== state.fence + 1) throw fenced(state, request.fence);
    const { turnId, owner, leaseUntilMs, fence } = request;
    if (!isColumnText(turnId, 256) || !isColumnText(owner, 256)) {
      const message = "A turn's id and owner are text of 1 to 256 characters without control characters.";
      throw new ThroughlineError("INPUT_INVALID", message, { outcome: "not-applied" });
    }
    assertLease(leaseUntilMs);
    return { fence, turn: { turnId, owner, leaseUntilMs, fence } };
  }
  if (request.fence !== state.fence || state.turn === null) throw fenced(state, request.fence);
  if (request.action === "renew") {
    assertLease(request.leaseUntilMs);
    return { ...state, turn: { ...state.turn, leaseUntilMs: request.leaseUntilMs } };
  }
  return request.action === "close" ? { ...state, turn: null } : state;
}

/**
 * A store that keeps the turn as JSON would read null for any other value, and would then end no lease or every lease.
 */
function assertLease(leaseUntilMs: number): void {
  if (Number.isFinite(leaseUntilMs)) return;
  throw refused("INPUT_INVALID", "The end of a lease is a time in milliseconds.", { leaseUntilMs });
}

function fenced(state: TurnState, fence: number): ThroughlineError {
  const open = state.turn === null ? "no turn is open" : `turn ${quote(state.turn.turnId)} is open`;
  return new ThroughlineError(
    "TURN_FENCED",
    `Fence ${fence} is refused: the session is at fence ${state.fence} and ${open}.`,
    {
      outcome: "not-applied",
      details: { fence, currentFence: state.fence, turn: state.turn },
    },
  );
}
