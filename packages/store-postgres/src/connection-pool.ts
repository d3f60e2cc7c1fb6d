import { createHash } from "node:crypto";
import type { Clock, RandomSource } from "@throughline/core";
import type { WriteOutcome } from "@throughline/core/internal";
import { hasErrorCode, ThroughlineError } from "@throughline/core";
import { abortedBefore, refused } from "@throughline/core/internal";
import type { TenantAgent } from "./layout.ts";
import type { NodeShares } from "./node-shares.ts";
import {
  connectError,
  hasAnswered,
  isAnswer,
  isLostName,
  isPassing,
  isPoolEnded,
  isQueueTimeout,
  isUnsent,
  isVictim,
  storeError,
} from "./postgres-errors.ts";
import type { DatabaseRow } from "./row-values.ts";
import { beginning, ownNamesOnly } from "./statement-settings.ts";
import { asError, waitWithin } from "./wait-within.ts";

/** Describes a lent connection: the part of the driver's client that the store uses. */
export interface PostgresConnection {
  /** Runs one statement. It is prepared under `name`, if a name is given. */
  query(query: { readonly text: string; readonly values: unknown[]; readonly name?: string }): Promise<{
    readonly rows: readonly unknown[];
  }>;
  /** Returns the connection to the pool. With an error the pool discards it. */
  release(error?: Error | boolean): void;
  /** Adds a listener for errors. Without one, the end of an idle connection would end the process. */
  on?(event: "error", listener: () => void): unknown;
  /** Removes a listener that `on` added. */
  off?(event: "error", listener: () => void): unknown;
}

/** Describes the part of the driver's pool that the store uses. A pool that the program shares with other code fits. */
export interface PostgresPool {
  /** Counts the callers that wait for a connection. */
  readonly waitingCount: number;
  /** Counts the idle connections. The store waits with a timer for a pool that does not state it. */
  readonly idleCount?: number;
  /** States the limits. A pool of one connection gets no listener, because the listener would keep it. */
  readonly options?: {
    /** Limits the connections of the pool. */
    readonly max?: number;
  };
  /** Lends a connection, which `release` returns. */
  connect(): Promise<PostgresConnection>;
}

export interface PoolOptions {
  readonly maxWaiting: number;
  readonly timeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly prepare: boolean;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Names host and database in messages. */
  readonly place: string;
  /** Returns statements, each with its semicolon, that run first in every transaction. @default none */
  settings?(): string;
  /** Limits what works for one node of Citus. @default no limit */
  readonly shares?: NodeShares;
}

export interface RunOptions {
  /** Owns the rows that are asked for. Without it the operation counts among those that ask all nodes. */
  readonly agent?: TenantAgent | undefined;
  /** Names the node of Citus that is asked, where several agents share it. It is null if no other node is asked. */
  readonly node?: string | null | undefined;
  /** Ends the wait for a connection, and for a read also the wait for the answer. */
  readonly signal?: AbortSignal | undefined;
  /** The pool repeats a read that was cut off, within the deadline. It never repeats a write. */
  readonly isRead?: boolean;
  /** A frequent statement is prepared under a name, because its text is one of a few. */
  readonly isFrequent?: boolean;
}

interface SendOptions {
  readonly deadlineMs: number;
  readonly isNamed?: boolean;
  readonly signal?: AbortSignal | undefined;
}

/** Holds a transaction open while a caller works. Each statement has its own deadline. */
export interface LentConnection {
  readonly run: RunStatement;
  /** With an error the connection is discarded. */
  giveBack(error?: unknown): void;
}

/** Runs one statement on a connection that is lent for a transaction. */
export type RunStatement = (text: string, values?: readonly unknown[]) => Promise<readonly DatabaseRow[]>;

/**
 * Lends connections. Each operation has one deadline for everything it waits for, and the pool refuses it at once if
 * `maxWaiting` operations wait already. An operation that fails before its statement was sent was not applied, and is
 * tried again while time is left. An operation that fails later without an answer has an unknown outcome, and its
 * connection is discarded.
 */
export class ConnectionPool {
  readonly #pool: PostgresPool;
  readonly #options: PoolOptions;
  readonly #names = new Map<string, string>();
  readonly #ending = new AbortController();
  #isPreparing: boolean;
  #queries = 0;

  constructor(pool: PostgresPool, options: PoolOptions) {
    this.#pool = pool;
    this.#options = options;
    this.#isPreparing = options.prepare;
  }

  /** Counts the statements that were sent, one round trip each. */
  get queries(): number {
    return this.#queries;
  }

  get place(): string {
    return this.#options.place;
  }

  /** Refuses every operation that waits for a connection, and every later one. */
  end(): void {
    this.#ending.abort();
  }

  /** Runs one statement, which is its own transaction. */
  async run(text: string, values: readonly unknown[], options: RunOptions = {}): Promise<readonly DatabaseRow[]> {
    const deadlineMs = this.#options.clock.nowMs() + this.#options.timeoutMs;
    for (let attempt = 0; ; attempt++) {
      const connection = await this.#borrow(deadlineMs, options);
      const isNamed = this.#isPreparing && options.isFrequent === true;
      try {
        const signal = options.isRead === true ? options.signal : undefined;
        const rows = await this.#send(connection, text, values, { deadlineMs, isNamed, signal });
        giveBack(connection);
        return rows;
      } catch (error) {
        giveBack(connection, isAnswer(error) ? undefined : asError(error));
        if (isNamed && isLostName(error)) {
          // A pooler sent the statement to a connection without its name. The server refused it before it ran.
          this.#isPreparing = false;
          continue;
        }
        const isBroken = options.isRead === true && !isAnswer(error) && isPassing(error);
        const mayRepeat = isUnsent(error) || isVictim(error) || isBroken;
        const isOver = options.signal?.aborted === true;
        if (!mayRepeat || isOver || !(await this.#rest(attempt, deadlineMs, options.signal))) {
          const isKnown = isAnswer(error) || isUnsent(error);
          throw storeError(error, isKnown ? "not-applied" : "unknown", this.place);
        }
      }
    }
  }

  /**
   * Runs several statements in one transaction on one connection. `work` must do nothing but run statements, because
   * the pool repeats it within the deadline when the server undid it in favor of another transaction. The agent owns
   * the rows, if they belong to one.
   */
  async transaction<Result>(work: (run: RunStatement) => Promise<Result>, agent?: TenantAgent): Promise<Result> {
    const deadlineMs = this.#options.clock.nowMs() + this.#options.timeoutMs;
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#transactOnce(work, deadlineMs, agent);
      } catch (error) {
        if (!isVictim((error as Error).cause) || !(await this.#rest(attempt, deadlineMs, undefined))) throw error;
      }
    }
  }

  async #transactOnce<Result>(
    work: (run: RunStatement) => Promise<Result>,
    deadlineMs: number,
    agent: TenantAgent | undefined,
  ): Promise<Result> {
    const connection = await this.#borrow(deadlineMs, { agent });
    let step: "work" | "commit" = "work";
    try {
      const run: RunStatement = (text, values = []) => this.#send(connection, text, values, { deadlineMs });
      const lockMs = Math.max(1, Math.trunc(this.#options.timeoutMs / 2));
      for (const statement of beginning(lockMs, this.#options.settings?.() ?? "")) await run(statement);
      const result = await work(run);
      step = "commit";
      await run("COMMIT");
      giveBack(connection);
      return result;
    } catch (error) {
      const isRefusal = ThroughlineError.isInstance(error) && error.outcome === "not-applied";
      const wasUndone = step === "work" && (isRefusal || isAnswer(error)) && (await this.#undo(connection, deadlineMs));
      giveBack(connection, wasUndone ? undefined : asError(error));
      if (isRefusal) throw error;
      // The server undoes an uncommitted transaction, whatever happened to the connection.
      const outcome = step === "commit" && !isAnswer(error) ? "unknown" : "not-applied";
      throw ThroughlineError.isInstance(error)
        ? new ThroughlineError(error.code, error.message, { outcome, details: error.details, cause: error })
        : storeError(error, outcome, this.place);
    }
  }

  /** Reads one moment. Each statement has the whole deadline, because a store is longer than one operation. */
  async snapshot<Result>(
    work: (run: RunStatement) => Promise<Result>,
    signal: AbortSignal | undefined,
  ): Promise<Result> {
    const deadline = (): number => this.#options.clock.nowMs() + this.#options.timeoutMs;
    const connection = await this.#borrow(deadline(), { signal });
    try {
      const run: RunStatement = (text, values = []) =>
        this.#send(connection, text, values, { deadlineMs: deadline(), signal });
      await run(`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ${ownNamesOnly}`);
      const result = await work(run);
      await run("COMMIT");
      giveBack(connection);
      return result;
    } catch (error) {
      // The transaction wrote nothing, and the server drops the snapshot with the connection.
      giveBack(connection, asError(error));
      throw storeError(error, "not-applied", this.place);
    }
  }

  async lend(signal: AbortSignal | undefined): Promise<LentConnection> {
    const deadline = (): number => this.#options.clock.nowMs() + this.#options.timeoutMs;
    const connection = await this.#borrow(deadline(), { signal });
    return {
      run: (text, values = []) => this.#send(connection, text, values, { deadlineMs: deadline() }),
      giveBack: (error) => giveBack(connection, error === undefined ? undefined : asError(error)),
    };
  }

  async #undo(connection: PostgresConnection, deadlineMs: number): Promise<boolean> {
    try {
      await this.#send(connection, "ROLLBACK", [], { deadlineMs });
      return true;
    } catch {
      // The connection is discarded, and the server undoes the transaction.
      return false;
    }
  }

  /** Sleeps before the next attempt, at random so that clients do not return together. False: no time is left. */
  async #rest(attempt: number, deadlineMs: number, signal: AbortSignal | undefined): Promise<boolean> {
    const { clock, random } = this.#options;
    const most = Math.min(2000, 25 * 2 ** Math.min(attempt, 10));
    const delayMs = most / 2 + (random.uint32() % 1000) * (most / 2000);
    if (clock.nowMs() + delayMs >= deadlineMs) return false;
    await clock.sleep(delayMs, signal).catch(() => {
      throw abortedBefore("the operation was done", signal);
    });
    return true;
  }

  /** Waits for a share of the agent's node first, where the rows are on several nodes. */
  async #borrow(
    deadlineMs: number,
    { agent, node: named, signal }: Pick<RunOptions, "agent" | "node" | "signal">,
  ): Promise<PostgresConnection> {
    const { clock, timeoutMs, shares } = this.#options;
    const node = named === undefined ? (shares?.nodeOf(agent) ?? null) : named;
    if (shares === undefined || node === null) return this.#connect(deadlineMs, signal);
    const withinMs = deadlineMs - clock.nowMs();
    const wait = { withinMs, signal, ending: this.#ending.signal, timeoutMs, place: this.place };
    const giveShareBack = await shares.take(node, wait);
    try {
      const connection = await this.#connect(deadlineMs, signal);
      return {
        query: (query) => connection.query(query),
        release(error) {
          giveShareBack(hasAnswered(error));
          connection.release(error);
        },
        off: (event, listener) => connection.off?.(event, listener),
      };
    } catch (error) {
      giveShareBack();
      throw error;
    }
  }

  async #connect(deadlineMs: number, signal: AbortSignal | undefined): Promise<PostgresConnection> {
    const { maxWaiting, timeoutMs, connectTimeoutMs, clock } = this.#options;
    const connectByMs = Math.min(deadlineMs, clock.nowMs() + connectTimeoutMs);
    let refusal: ThroughlineError | null = null;
    for (let attempt = 0; ; attempt++) {
      const { waitingCount } = this.#pool;
      if (waitingCount >= maxWaiting)
        throw refused("STORE_OVERLOADED", `${maxWaiting} operations wait for a connection already.`, { maxWaiting });
      try {
        // An idle connection is lent at once and needs no timer.
        const isThere = (this.#pool.idleCount ?? 0) > waitingCount;
        const connecting = this.#pool.connect();
        // A caller that is not queued waits for the server, not for a connection.
        const isQueued = this.#pool.waitingCount > waitingCount;
        const byMs = isQueued ? deadlineMs : connectByMs;
        const connection = isThere ? await connecting : await this.#wait(connecting, { isQueued, byMs, signal });
        connection.on?.("error", unheard);
        return connection;
      } catch (error) {
        // The last attempt was cut short, so the error of the attempt before it says more.
        if (hasErrorCode(error, "STORE_UNREACHABLE") && refusal !== null) throw refusal;
        if (ThroughlineError.isInstance(error)) throw error;
        if (this.#ending.signal.aborted || isPoolEnded(error))
          throw refused("STORE_CLOSED", "The store's connections were ended.", {}, error);
        refusal = isQueueTimeout(error)
          ? refused("STORE_OVERLOADED", `No connection was free within ${timeoutMs} ms.`, { timeoutMs }, error)
          : connectError(error, `${this.place}, within ${connectTimeoutMs} ms`);
        if (!isPassing(error) || !(await this.#rest(attempt, connectByMs, signal))) throw refusal;
      }
    }
  }

  /** Waits for a connection. One that comes too late is returned. */
  #wait(
    connecting: Promise<PostgresConnection>,
    {
      isQueued,
      byMs,
      signal,
    }: { readonly isQueued: boolean; readonly byMs: number; readonly signal?: AbortSignal | undefined },
  ): Promise<PostgresConnection> {
    const { clock, timeoutMs, connectTimeoutMs } = this.#options;
    const { place } = this;
    const withinMs = Math.min(timeoutMs, connectTimeoutMs);
    return waitWithin(connecting, {
      withinMs: byMs - clock.nowMs(),
      signal,
      ending: this.#ending.signal,
      late: () =>
        isQueued
          ? refused("STORE_OVERLOADED", `No connection was free within ${timeoutMs} ms.`, { timeoutMs })
          : refused("STORE_UNREACHABLE", `${place} took no connection within ${withinMs} ms.`, { withinMs, place }),
      unwanted: (connection) => connection.release(),
    });
  }

  /** Makes one round trip. A statement without an answer by the deadline counts as broken off. */
  async #send(
    connection: PostgresConnection,
    text: string,
    values: readonly unknown[],
    { deadlineMs, isNamed = false, signal }: SendOptions,
  ): Promise<readonly DatabaseRow[]> {
    const { clock, timeoutMs } = this.#options;
    this.#queries += 1;
    let timer: NodeJS.Timeout | undefined;
    let onAbort: (() => void) | undefined;
    const late = new Promise<never>((_resolve, reject) => {
      if (signal !== undefined) {
        onAbort = () => reject(abortedBefore("the operation was done", signal));
        signal.addEventListener("abort", onAbort);
      }
      timer = setTimeout(
        () => {
          const outcome: WriteOutcome = "unknown";
          const message = `The database did not answer within ${timeoutMs} ms.`;
          reject(
            new ThroughlineError("STORE_UNREACHABLE", message, { outcome, details: { timeoutMs, place: this.place } }),
          );
        },
        Math.max(0, deadlineMs - clock.nowMs()),
      );
    });
    const query = { text, values: [...values], ...(isNamed ? { name: this.#nameOf(text) } : {}) };
    const answer = connection.query(query);
    try {
      const { rows } = await Promise.race([answer, late]);
      return rows as readonly DatabaseRow[];
    } finally {
      clearTimeout(timer);
      if (onAbort !== undefined) signal?.removeEventListener("abort", onAbort);
      // After the deadline the result is discarded, so its rejection must not be reported as unhandled.
      answer.catch(() => undefined);
    }
  }

  /** The name is a hash of the text, so clients that share a connection mean the same statement by it. */
  #nameOf(text: string): string {
    const known = this.#names.get(text);
    if (known !== undefined) return known;
    const name = `throughline_${createHash("sha256").update(text).digest("hex").slice(0, 32)}`;
    this.#names.set(text, name);
    return name;
  }
}

/** The running statement reports the end of its connection. Unheard, that end would also end the process. */
function unheard(): void {}

function giveBack(connection: PostgresConnection, error?: Error): void {
  connection.release(error);
  // A broken connection may emit more errors, so its listener stays.
  if (error === undefined) connection.off?.("error", unheard);
}
