import { ThroughlineError, type RecordDraft } from "@throughline/core";
import type { QueueSettings } from "@throughline/policy/internal";
import type { Turn } from "./turn.ts";
import { textOfContent } from "./window-facts.ts";

export interface QueueHolder {
  readonly turnId: string;
  readonly sinceMs: number;
  /** Is set once the turn is open and its message is stored. Before that, an abort would lose the message. */
  controller?: AbortController;
  /** Is true when a newer message asks the turn to end. */
  isInterrupted?: boolean;
}

export interface WaitingTurn {
  readonly holder: QueueHolder;
  /**
   * Creates the drafts of the turn's message, for another turn that takes them over. Null for a turn that must run on
   * its own.
   */
  readonly drafts: (() => readonly RecordDraft[]) | null;
  readonly settings: QueueSettings;
  readonly arrivedAtMs: number;
}

/**
 * `own` means that the turn runs itself and must call `leave` for the next one. `joined` holds the turn that took over
 * its message.
 */
export type QueuePlace =
  | { readonly kind: "own"; readonly leave: () => void }
  | { readonly kind: "joined"; readonly turn: Turn };

/** Holds the messages that a turn took over from waiting turns. */
export interface TakenWords {
  readonly drafts: readonly RecordDraft[];
  /** Resolves the calls of the waiting turns with the turn that has their messages. */
  join(turn: Promise<Turn>): void;
}

interface Waiting extends WaitingTurn {
  isSteered: boolean;
  letIn(): void;
  refuse(error: ThroughlineError): void;
  join(turn: Promise<Turn>): void;
}

/** Applies when the caller sets `whenBusy`, because the entry's queue mode must not override it. */
export const plainQueue: QueueSettings = { behavior: "followup", debounceMs: 0, cap: null, drop: "new" };

/** Limits the quoted line of a message that was left out, in characters. */
const longestLine = 140;

/** Runs the turns of one session in one process one at a time, in the order of arrival. */
export class TurnQueue {
  holder: QueueHolder | null = null;
  /** Holds the promise of the holder's turn; null until the turn begins. */
  running: Promise<Turn> | null = null;
  /** Holds the arrival time of the newest waiting turn, for the debounce. */
  lastArrivalMs = 0;
  #waiting: Waiting[] = [];
  /** Holds the messages that were dropped because too many turns waited. The next turn with a message mentions them. */
  #leftOut: Waiting[] = [];

  get isIdle(): boolean {
    return this.holder === null && this.#waiting.length === 0;
  }

  /**
   * Waits until the turn may run, or until another turn takes over its message.
   *
   * @throws {ThroughlineError} ABORTED; SESSION_BUSY when too many turns wait
   */
  async enter(turn: WaitingTurn, signal: AbortSignal | undefined): Promise<QueuePlace> {
    if (this.holder !== null) {
      const joined = await this.#wait(turn, signal);
      if (joined !== null) return { kind: "joined", turn: joined };
    }
    this.holder = turn.holder;
    return { kind: "own", leave: () => this.#leave() };
  }

  /** Takes over the messages of all waiting turns, for one turn. */
  takeWaiting(): TakenWords {
    return this.#take((waiting) => waiting.drafts !== null);
  }

  /** Takes over the messages that the running turn must include in its next call. */
  takeSteered(): readonly RecordDraft[] {
    const { running } = this;
    if (running === null) return [];
    const isSteering = ({ drafts, settings: { behavior } }: Waiting): boolean =>
      drafts !== null && behavior === "steer";
    const backlog = this.#waiting.filter(
      ({ drafts, settings: { behavior }, isSteered }) => drafts !== null && behavior === "steer-backlog" && !isSteered,
    );
    for (const waiting of backlog) waiting.isSteered = true;
    const taken = this.#take(isSteering);
    taken.join(running);
    return [...taken.drafts, ...backlog.flatMap(({ drafts }) => drafts?.() ?? [])];
  }

  /** Summarizes each dropped message in one line, for the turn that begins. `drafts` is empty when none was dropped. */
  takeLeftOut(): TakenWords {
    const leftOut = this.#leftOut;
    this.#leftOut = [];
    const lines = leftOut.map(({ drafts }) => `- ${lineOf(drafts?.() ?? [])}`);
    const count = lines.length === 1 ? "1 earlier message was" : `${lines.length} earlier messages were`;
    const content = `[${count} left out: too many waited]\n${lines.join("\n")}`;
    return {
      drafts: lines.length === 0 ? [] : [{ type: "message", message: { role: "user", content } }],
      join: (turn) => leftOut.forEach((waiting) => waiting.join(turn)),
    };
  }

  /** Aborts the running turn once its message is stored. */
  interrupt(): void {
    const { holder } = this;
    if (holder === null) return;
    holder.isInterrupted = true;
    if (holder.controller !== undefined) abortInterrupted(holder.controller);
  }

  #take(isTaken: (waiting: Waiting) => boolean): TakenWords {
    const taken = this.#waiting.filter(isTaken);
    this.#waiting = this.#waiting.filter((waiting) => !taken.includes(waiting));
    return {
      drafts: taken.flatMap(({ drafts }) => drafts?.() ?? []),
      join: (turn) => taken.forEach((waiting) => waiting.join(turn)),
    };
  }

  #leave(): void {
    this.holder = null;
    this.running = null;
    const next = this.#waiting.shift();
    if (next !== undefined) return next.letIn();
    // No later turn remains that could mention the dropped messages, so their calls fail.
    for (const waiting of this.#leftOut.splice(0)) waiting.refuse(queueFull(waiting.settings));
  }

  /** @throws {ThroughlineError} SESSION_BUSY */
  #makeRoom({ cap, drop }: QueueSettings): void {
    if (cap === null || this.#waiting.length < cap) return;
    if (drop === "new") throw queueFull({ cap });
    const oldest = this.#waiting.shift();
    if (oldest === undefined) return;
    if (drop === "summarize" && oldest.drafts !== null) this.#leftOut.push(oldest);
    else oldest.refuse(queueFull({ cap }));
  }

  /** Resolves to null when the turn may run, else to the turn that took over its message. */
  #wait(turn: WaitingTurn, signal: AbortSignal | undefined): Promise<Turn | null> {
    this.#makeRoom(turn.settings);
    this.lastArrivalMs = turn.arrivedAtMs;
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        const at = this.#waiting.indexOf(waiting);
        // Another turn has the message already, so the call waits for the end of that turn.
        if (at < 0) return;
        this.#waiting.splice(at, 1);
        reject(new ThroughlineError("ABORTED", "The wait for the session was aborted.", { cause: signal?.reason }));
      };
      const settle = (joined: Promise<Turn> | null): void => {
        signal?.removeEventListener("abort", giveUp);
        resolve(joined);
      };
      const waiting: Waiting = {
        ...turn,
        isSteered: false,
        letIn: () => {
          // The holder is set at once, so that a turn that arrives now must wait.
          this.holder = turn.holder;
          settle(null);
        },
        refuse: (error) => {
          signal?.removeEventListener("abort", giveUp);
          reject(error);
        },
        join: settle,
      };
      this.#waiting.push(waiting);
      if (signal?.aborted === true) giveUp();
      else signal?.addEventListener("abort", giveUp, { once: true });
    });
  }
}

/** Ends the holder's turn. The part of the answer that was received is stored. */
export function abortInterrupted(controller: AbortController): void {
  controller.abort(new ThroughlineError("ABORTED", "A newer message interrupted the turn."));
}

function queueFull({ cap }: Pick<QueueSettings, "cap">): ThroughlineError {
  const message = `The message was not stored: ${cap} messages wait for the session, and its queueCap allows no more.`;
  return new ThroughlineError("SESSION_BUSY", message, { outcome: "not-applied", details: { queueCap: cap } });
}

function lineOf(drafts: readonly RecordDraft[]): string {
  const texts = drafts.map((draft) =>
    textOfContent((draft["message"] as { readonly content?: unknown } | undefined)?.content),
  );
  const line = texts.join(" ").replaceAll(/\s+/g, " ").trim();
  if (line === "") return "(no text)";
  return line.length > longestLine ? `${line.slice(0, longestLine).toWellFormed()}…` : line;
}
