import {
  type AppendedRecord,
  type AppendResult,
  hasErrorCode,
  type SessionEvent,
  type SessionRef,
  type ThroughlineError,
} from "@throughline/core";
import { monotonicMs } from "@throughline/core/node";
import { type AppendPlan, type AppendRequest, storedRecord } from "@throughline/core/store";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import { writeEntry } from "./append-entry.ts";
import { planHeld, inFile, stageAppend, type StagedAppend } from "./append-records.ts";
import type { HeldSession } from "./held-session.ts";
import { isUnflushed } from "./durable-session.ts";
import { afterCommit, fileError } from "./file-work.ts";
import { withSession } from "./session-access.ts";
import { lockAborted } from "./session-lock.ts";
import type { SessionRow } from "./session-row.ts";
import type { StoreContext } from "./store-context.ts";
import type { EncodedLine } from "./stored-line.ts";
import { WaitingLine } from "./waiting-line.ts";

/** What was written for an append. It is acknowledged when `flushed` resolves, or at once where there is nothing to wait for. */
export interface WrittenAppend {
  readonly held: HeldSession;
  readonly result: AppendResult;
  /** To be announced once it is acknowledged. */
  readonly events: readonly SessionEvent[];
  readonly flushed: Promise<unknown> | null;
}

/** Others wait for the lock meanwhile: so much text is written at once at most, or one append. */
const maxStagedLength = 1024 * 1024;

/** An append that was decided. */
interface Decided {
  readonly waiting: Waiting;
  readonly plan: AppendPlan;
  /** Null when it is written already: it was made again with its key. */
  readonly staged: StagedAppend | null;
}

interface Waiting {
  readonly request: AppendRequest;
  /** The row as it was known when the append was asked for. */
  readonly row: SessionRow;
  /** By `monotonicMs`. */
  readonly sinceMs: number;
  /** Written by itself, after a write of several failed: one of them may be what does not fit. */
  isAlone: boolean;
  resolve(written: WrittenAppend): void;
  reject(error: unknown): void;
}

/**
 * The appends of one session that this process waits to write, in the order they came. Whoever gets the session's lock
 * writes all that wait by then, in one write with one flush.
 */
export class AppendQueue {
  readonly #context: StoreContext;
  readonly #agent: AgentSessionFiles;
  readonly #ref: SessionRef;
  readonly #onIdle: () => void;
  readonly #waiting: WaitingLine<Waiting> = new WaitingLine();
  #isRunning = false;
  #abandoned: AbortController | null = null;

  /** `onIdle`: nothing waits any more. */
  constructor(context: StoreContext, agent: AgentSessionFiles, ref: SessionRef, onIdle: () => void) {
    this.#context = context;
    this.#agent = agent;
    this.#ref = ref;
    this.#onIdle = onIdle;
  }

  /** @throws {ThroughlineError} what the contract says of `append`; ABORTED while it waits */
  append(request: AppendRequest, row: SessionRow): Promise<WrittenAppend> {
    return new Promise((resolve, reject) => {
      const { signal } = request.options;
      // While the session was looked for: the signal will not say so again.
      if (signal?.aborted === true) return reject(lockAborted(signal));
      const sinceMs = monotonicMs();
      const waiting: Waiting = { request, row, sinceMs, isAlone: false, resolve, reject };
      if (signal !== undefined) this.#abortWith(signal, waiting);
      this.#waiting.add(waiting);
      if (!this.#isRunning) void this.#run();
    });
  }

  #abortWith(signal: AbortSignal, waiting: Waiting): void {
    const { resolve, reject } = waiting;
    const abort = (): void => {
      // Once it is being written there is nothing to give up.
      if (!this.#waiting.remove(waiting)) return;
      reject(lockAborted(signal));
      if (this.#waiting.isEmpty) this.#abandoned?.abort();
    };
    signal.addEventListener("abort", abort, { once: true });
    waiting.resolve = (written) => {
      signal.removeEventListener("abort", abort);
      resolve(written);
    };
    waiting.reject = (error) => {
      signal.removeEventListener("abort", abort);
      reject(error);
    };
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    this.#isRunning = true;
    // Appends that are asked for in the same turn of the loop go together.
    await Promise.resolve();
    for (let { first } = this.#waiting; first !== undefined; { first } = this.#waiting) {
      let next = first;
      const write = (): Promise<void> => this.#writeNext((next = this.#waiting.first ?? next));
      try {
        await this.#context.room.patiently(write, () => this.#waiting.length);
      } catch (error) {
        this.#refuse(error, next);
      }
    }
    this.#isRunning = false;
    this.#onIdle();
  }

  async #writeNext(first: Waiting): Promise<void> {
    const { sinceMs, request } = first;
    // The key may have another session by now, and that is the one this will be written to.
    const row = this.#agent.peek(this.#ref) ?? first.row;
    const isEntryOnly = isWithoutRecords(request);
    const isWhole = this.#waiting.some((waiting) => needsWhole(waiting.request));
    this.#abandoned = request.options.signal === undefined ? null : new AbortController();
    const isToBeDurable = this.#waiting.some(isForDisk) && isUnflushed(this.#agent, row.sessionId);
    // Another program may cut the transcript a moment later: its patches are in the entries log before that.
    const paysDebts = this.#agent.place.isOpenclaws && this.#waiting.some(patchesEntry);
    const durability = isToBeDurable ? "disk" : request.durability;
    const scope = { context: this.#context, agent: this.#agent, durability };
    const changesEntries = isEntryOnly || isToBeDurable || paysDebts;
    const reading = this.#agent.prepare(row, isWhole);
    if (reading !== null) await reading;
    const access = { row, changesEntries, isWhole, signal: this.#abandoned?.signal, sinceMs };
    await withSession(scope, this.#ref, access, (held) => {
      if (!isEntryOnly) this.#writeTogether(held, isWhole, changesEntries);
      // Given up while this waited: whoever comes next may have records, and other locks to take.
      else if (this.#waiting.first === first) this.#writeEntry(held);
    });
  }

  #writeEntry(held: HeldSession): void {
    const waiting = this.#waiting.take();
    if (waiting === undefined) return;
    const { request, resolve, reject } = waiting;
    try {
      // Records whose flush failed come first: an entry on the disk would say that they are there.
      const isForDisk = request.durability === "disk";
      if (isForDisk) held.file.settleDoubt();
      const nowMs = this.#context.clock.nowMs();
      const plan = planHeld(held, this.#agent.log, request, nowMs);
      if (!plan.result.replayed) writeEntry(this.#agent, held, request, plan, nowMs);
      this.#agent.remember(held);
      if (plan.result.replayed && isForDisk) afterCommit(held.path, () => this.#agent.log.settle());
      const flushed = isForDisk ? this.#agent.log.flushed() : null;
      resolve({ held, result: plan.result, events: plan.events, flushed });
    } catch (error) {
      reject(error);
    }
  }

  /** Decides each append by what those before it leave, and writes them all. `changesEntries`: the entries lock is held too. */
  #writeTogether(first: HeldSession, isWhole: boolean, changesEntries: boolean): void {
    const take = (now: HeldSession): Waiting | null => this.#take(now, decided, isWhole, changesEntries);
    const temporary = this.#agent.folder.temporary(first.row.fileName);
    const decided: Decided[] = [];
    let held = first;
    for (let next = take(held); next !== null; next = take(held)) {
      const { request, reject } = next;
      try {
        const nowMs = this.#context.clock.nowMs();
        const plan = planHeld(held, this.#agent.log, request, nowMs);
        const staged = plan.result.replayed
          ? standAgain(held, request, plan.result.records[0]?.seq)
          : stageAppend(this.#context, held, { request, plan, nowMs }, temporary);
        decided.push({ waiting: next, plan, staged });
        if (staged !== null) held = this.#agent.holdStaged(held);
      } catch (error) {
        // Another program is in the middle of a line: it is looked at again, for as long as this waits for a lock.
        if (hasErrorCode(error, "STORE_LOCKED") && !this.#isOverdue(next)) this.#waiting.putBack([next]);
        else reject(error);
        // The file is another by now, or may be: nothing of this was written, and a new look decides all of it.
        if (held.file.current === null) return void this.#waiting.putBack(decided.map(({ waiting }) => waiting));
      }
    }
    this.#commit(held, decided);
  }

  /** The next append that goes into the same write; null when there is none. */
  #take(
    { file, row }: HeldSession,
    decided: readonly Decided[],
    isWhole: boolean,
    changesEntries: boolean,
  ): Waiting | null {
    const next = this.#waiting.first;
    if (next === undefined || isWithoutRecords(next.request)) return null;
    if (needsWhole(next.request) && !isWhole) return null;
    if (patchesEntry(next) && !changesEntries && this.#agent.place.isOpenclaws) return null;
    // What it hangs on must be on the disk before, and that takes another lock.
    if (isForDisk(next) && isUnflushed(this.#agent, row.sessionId)) return null;
    // The failure of a write that comes after it is not its own.
    if (decided.at(-1)?.staged?.isWritten === true) return null;
    if (decided.length > 0 && (next.isAlone || decided[0]?.waiting.isAlone === true)) return null;
    return file.stagedLength < maxStagedLength ? (this.#waiting.take() ?? null) : null;
  }

  #commit(held: HeldSession, decided: readonly Decided[]): void {
    const { file, path } = held;
    let isInPlace: boolean;
    try {
      isInPlace = file.commit(path);
    } catch (error) {
      this.#agent.unlearn(held);
      this.#takeBack(fileError(error, path), decided);
      return;
    }
    let isPaid: boolean;
    try {
      isPaid = afterCommit(path, () => this.#payDebt(held, decided));
    } catch (error) {
      for (const { waiting } of decided) waiting.reject(error);
      return;
    }
    const flushed = decided.some(({ waiting }) => isForDisk(waiting)) ? this.#flushed(held, isPaid) : null;
    // Whoever waits for it hears of its failure; should nobody, by another error, that is no reason to end the process.
    flushed?.catch(() => undefined);
    this.#agent.remember(held);
    const last = decided.findLast(({ staged }) => staged !== null);
    for (const one of decided) {
      const { waiting, plan } = one;
      const { request, resolve, reject } = waiting;
      try {
        const { result, events } = isInPlace ? plan : this.#planInFile(held, one, one === last);
        const answer = request.options.return === undefined ? result : withLines(result, one);
        resolve({ held, result: answer, events, flushed: request.durability === "disk" ? flushed : null });
      } catch (error) {
        reject(error);
      }
    }
  }

  /** What was made again may have been written just now: its place is another, too. */
  #planInFile(held: HeldSession, { waiting, staged }: Decided, isLast: boolean): Pick<AppendPlan, "result" | "events"> {
    if (staged !== null) return inFile(held, staged, isLast);
    return planHeld(this.#agent.holdStaged(held), this.#agent.log, waiting.request, this.#context.clock.nowMs());
  }

  /** Beside OpenClaw: puts the patches of these appends into the entries log. True where its flush is to be waited for. */
  #payDebt(held: HeldSession, decided: readonly Decided[]): boolean {
    const { place, redo, log } = this.#agent;
    if (!place.isOpenclaws || !decided.some(({ waiting }) => patchesEntry(waiting))) return false;
    const isPaid = redo.pay(log, this.#agent.holdStaged(held).row);
    const isRepeated = ({ waiting, plan }: Decided): boolean =>
      plan.result.replayed && patchesEntry(waiting) && isForDisk(waiting);
    if (!decided.some(isRepeated)) return isPaid;
    // The earlier call may have written the line and died before it flushed it.
    log.settle();
    return true;
  }

  /** Resolves when the records and what they hang on are on the disk. */
  #flushed({ file, row }: HeldSession, isPaid: boolean): Promise<unknown> {
    const { log } = this.#agent;
    const records = file.flushed();
    return !isPaid && log.isOnDisk(row.sessionId) ? records : Promise.all([records, log.flushed()]);
  }

  /** A write that failed. Of several, one may be what does not fit: each is tried by itself, if nothing is left of it. */
  #takeBack(error: ThroughlineError, decided: readonly Decided[]): void {
    const waiting = decided.map((one) => one.waiting);
    if (waiting.length === 1 || error.outcome !== "not-applied") for (const { reject } of waiting) reject(error);
    else this.#waiting.putBack(waiting.map((one) => Object.assign(one, { isAlone: true })));
  }

  /** Nothing was written: the session is gone, or the wait for its lock took too long or was given up. */
  #refuse(error: unknown, first: Waiting): void {
    // Who came later waits on, to its own deadline and for its own signal.
    const isOfFirst = hasErrorCode(error, "STORE_LOCKED", "ABORTED");
    const isRefused = (waiting: Waiting): boolean => !isOfFirst || this.#isOverdue(waiting);
    const refused = this.#waiting.takeOut((waiting) => waiting === first || isRefused(waiting));
    for (const { reject } of refused) reject(error);
  }

  #isOverdue({ sinceMs }: Waiting): boolean {
    return monotonicMs() - sinceMs > this.#context.locks.timeoutMs;
  }
}

/** What an earlier call has written is put where a flush reaches it: that call may have failed just there. */
function standAgain({ file, path, owner }: HeldSession, { durability }: AppendRequest, seq: number = Infinity): null {
  if (durability === "disk") afterCommit(path, () => file.settle(path, owner, seq));
  return null;
}

function isForDisk({ request }: Waiting): boolean {
  return request.durability === "disk";
}

function patchesEntry({ request }: Waiting): boolean {
  return request.options.entry !== undefined;
}

function isWithoutRecords({ prepared }: AppendRequest): boolean {
  return prepared.length === 0;
}

/** Whether an id or a key must be looked for among all records. A new key is in none of them. */
function needsWhole({ prepared, keyed, options }: AppendRequest): boolean {
  return (keyed !== null && options.isNewKey !== true) || prepared.some(({ isIdGiven }) => isIdGiven);
}

/** The result with the records as they were written; without them where an earlier append is answered. */
function withLines(result: AppendResult, { plan, staged }: Decided): AppendResult {
  if (staged === null) return result;
  const stored = plan.linked.map((item, index) => {
    const place = result.records[index] as AppendedRecord;
    return storedRecord(item, place, (staged.lines[index] as EncodedLine).stored);
  });
  return { ...result, stored };
}
