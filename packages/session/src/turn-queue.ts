import { ThroughlineError, type RecordDraft } from "@throughline/core";
import type { QueueSettings } from "@throughline/policy/internal";
import type { Turn } from "./turn.ts";
import { textOfContent } from "./window-facts.ts";

/** The turn that holds the queue. */
export interface QueueHolder {
  readonly turnId: string;
  readonly sinceMs: number;
  /** Set once the turn is open, and its words are stored. */
  controller?: AbortController;
  /** A newer message wants it to end. */
  isInterrupted?: boolean;
}

/** A turn that waits for the one that runs. */
export interface WaitingTurn {
  readonly holder: QueueHolder;
  /** Its words, where another turn may take them; null for a turn that has to be one of its own. */
  readonly drafts: (() => readonly RecordDraft[]) | null;
  readonly settings: QueueSettings;
  readonly arrivedAtMs: number;
}

/** A turn of its own, which lets the next one in with `leave`, or the turn that took the words, once it is over. */
export type QueuePlace =
  | { readonly kind: "own"; readonly leave: () => void }
  | { readonly kind: "joined"; readonly turn: Turn };

/** Words that a turn took from those that wait. */
export interface TakenWords {
  readonly drafts: readonly RecordDraft[];
  /** Gives the callers the turn that has their messages. */
  join(turn: Promise<Turn>): void;
}

interface Waiting extends WaitingTurn {
  isSteered: boolean;
  letIn(): void;
  refuse(error: ThroughlineError): void;
  join(turn: Promise<Turn>): void;
}

/** For a caller who says what is to happen when the session is busy. */
export const plainQueue: QueueSettings = { behavior: "followup", debounceMs: 0, cap: null, drop: "new" };

/** Of a message that was left out. */
const longestLine = 140;

/** Turns of one session in one process: one at a time, first come, first served. */
export class TurnQueue {
  holder: QueueHolder | null = null;
  /** The turn of the holder, once it began. */
  running: Promise<Turn> | null = null;
  /** When the newest turn came that had to wait. */
  lastArrivalMs = 0;
  #waiting: Waiting[] = [];
  /** What was left out because too many waited, until a turn says so. */
  #leftOut: Waiting[] = [];

  get isIdle(): boolean {
    return this.holder === null && this.#waiting.length === 0;
  }

  /**
   * Waits for its turn, or for another turn to take its words.
   *
   * @throws {ThroughlineError} ABORTED; SESSION_BUSY where too many wait
   */
  async enter(turn: WaitingTurn, signal: AbortSignal | undefined): Promise<QueuePlace> {
    if (this.holder !== null) {
      const joined = await this.#wait(turn, signal);
      if (joined !== null) return { kind: "joined", turn: joined };
    }
    this.holder = turn.holder;
    return { kind: "own", leave: () => this.#leave() };
  }

  /** The words of all that wait, for one turn. */
  takeWaiting(): TakenWords {
    return this.#take((waiting) => waiting.drafts !== null);
  }

  /** The words that the running turn is to know before its next call. */
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

  /** A line for each message that was left out, as words of the turn that begins; empty when none was. */
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

  /** Ends the turn that runs, once its words are stored. */
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
    // Nobody comes who could say it for them.
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

  /** Null when it is its turn; else the turn that took the words. */
  #wait(turn: WaitingTurn, signal: AbortSignal | undefined): Promise<Turn | null> {
    this.#makeRoom(turn.settings);
    this.lastArrivalMs = turn.arrivedAtMs;
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        const at = this.#waiting.indexOf(waiting);
        // Another turn has the words: its end is awaited.
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
          // Taken before anybody else can: whoever comes now waits.
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

/** The turn of the holder ends; what was received is stored. */
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
