import { abortedBefore, assertKnownOptions, optionKinds, type OptionTable } from "@throughline/core/internal";
import { ThroughlineError } from "@throughline/core";
import type { AppendOptions, AppendResult, Durability, SessionRef, SessionStore } from "@throughline/core";
import { DraftQueue } from "./draft-queue.ts";
import type { DraftLine } from "./read-drafts.ts";

/** What is acknowledged for each record, in the order of the input. */
export interface Acknowledgement {
  /** The record's sequence number in the session, from 1. */
  readonly seq: number;
  /** The record's id: the draft's own, else one that the store made. */
  readonly id: string;
  /** The session's head once this record was in. */
  readonly headId: string | null;
  /** What the record survives: the death of the process, or a power cut. */
  readonly durability: Durability;
}

/** Options of `appendLines`. */
export interface AppendLinesOptions {
  /** How many lines one append has; null: each line is an append. */
  readonly batch: number | null;
  /** What each append must survive; null: the store's own setting. */
  readonly durability: Durability | null;
  /** Of the first append; undefined: any head. Each later one then expects the head its predecessor left. */
  readonly expectHead: string | null | undefined;
  /** Of the first append; the n-th one has `:n` behind it. */
  readonly idempotencyKey: string | null;
  /** Begins no new append once it is aborted; appends under way are still waited for. */
  readonly signal: AbortSignal;
  /** Called once the records are durable. */
  readonly acknowledge: (acknowledgements: readonly Acknowledgement[]) => Promise<void>;
}

const { callback, integer, orNull, required, signal, text } = optionKinds;

const linesTable: OptionTable<AppendLinesOptions> = {
  batch: required(orNull(integer({ min: 1 }))),
  durability: required(orNull(text)),
  expectHead: orNull(text),
  idempotencyKey: required(orNull(text)),
  signal: required(signal),
  acknowledge: required(callback),
};

/** Appends under way at the same time: enough for a store that lets many share one flush. */
const maxUnderWay = 256;
const maxUnderWayBytes = 8 * 1024 * 1024;
/** A line of this size may be refused for it; it goes alone. */
const largeLineBytes = 1024 * 1024;

/**
 * Appends drafts as they come, and leaves it to the caller to end the input when this fails. Each line is an append of
 * its own, never part of a larger one: a torn file then costs one record and not a group of them. Many are under way at
 * once, in order; the store flushes once for all of them.
 *
 * A line the store refuses stops everything: those before it are in and acknowledged, none after it is applied. A line
 * may be refused for its content: a given id may be in use, a large line too large. Such a line is appended alone,
 * after those before it and before those after it. The same holds for batches, keys and expected heads.
 * @throws {ThroughlineError} INPUT_INVALID for an option or a line, with `details.line`; what the store and `acknowledge` throw
 */
export async function appendLines(
  store: SessionStore,
  ref: SessionRef,
  lines: AsyncIterator<DraftLine, void, void>,
  options: AppendLinesOptions,
): Promise<void> {
  assertKnownOptions<AppendLinesOptions>("appendLines", options, linesTable);
  const queue = new DraftQueue(lines);
  const pipeline = new AppendPipeline(store, ref, options);
  const { batchBytes } = store.capabilities.limits;
  try {
    for (;;) {
      const group = await queue.take(options.batch ?? 1, batchBytes);
      if (group.length === 0) break;
      await pipeline.submit(group);
    }
    await pipeline.finish();
  } catch (error) {
    await pipeline.abandon();
    throw error;
  } finally {
    queue.stop();
  }
  // Only now: what stood before a line that cannot be read is in and acknowledged.
  queue.throwFailure();
}

interface UnderWay {
  readonly group: readonly DraftLine[];
  readonly sizeBytes: number;
  readonly result: Promise<AppendResult>;
}

/** Appends in flight and their acknowledgements, which leave in the order of the input. */
class AppendPipeline {
  readonly #store: SessionStore;
  readonly #ref: SessionRef;
  readonly #options: AppendLinesOptions;
  readonly #abandoned = new AbortController();
  readonly #underWay: UnderWay[] = [];
  #underWayBytes = 0;
  #headId: string | null = null;
  #isHeadKnown = false;
  #appendCount = 0;
  #acknowledging: Promise<void> | null = null;

  constructor(store: SessionStore, ref: SessionRef, options: AppendLinesOptions) {
    this.#store = store;
    this.#ref = ref;
    this.#options = options;
  }

  /** Begins an append; waits while too many are under way, and for all others when this one must go alone. */
  async submit(group: readonly DraftLine[]): Promise<void> {
    const isAlone = this.#mustGoAlone(group);
    while (this.#underWay.length > 0 && (isAlone || this.#isFull())) await this.#acknowledgeFirst();
    const { signal } = this.#options;
    if (signal.aborted) throw abortedBefore("all lines were appended", signal);
    this.#appendCount += 1;
    const sizeBytes = group.reduce((sum, line) => sum + line.sizeBytes, 0);
    const drafts = group.map(({ draft }) => draft);
    const result = this.#store.append(this.#ref, drafts, this.#appendOptions());
    // It is awaited when its turn has come; until then a failure is not unhandled.
    result.catch(() => {});
    this.#underWay.push({ group, sizeBytes, result });
    this.#underWayBytes += sizeBytes;
    if (isAlone) await this.finish();
    else this.#acknowledgeSoon();
  }

  async finish(): Promise<void> {
    while (this.#underWay.length > 0 || this.#acknowledging !== null) await this.#acknowledgeFirst();
  }

  /** After a failure: what has not begun does not begin, what has begun is waited for. */
  async abandon(): Promise<void> {
    this.#abandoned.abort();
    await Promise.allSettled(this.#underWay.map(({ result }) => result));
  }

  #mustGoAlone(group: readonly DraftLine[]): boolean {
    const { batch, idempotencyKey, expectHead } = this.#options;
    if (batch !== null || idempotencyKey !== null || expectHead !== undefined) return true;
    return group.some(({ draft, sizeBytes }) => draft.id !== undefined || sizeBytes >= largeLineBytes);
  }

  #isFull(): boolean {
    return this.#underWay.length >= maxUnderWay || this.#underWayBytes >= maxUnderWayBytes;
  }

  /** Acknowledges without anybody waiting for it: a writer that pauses gets its acknowledgement all the same. */
  #acknowledgeSoon(): void {
    if (this.#acknowledging !== null) return;
    void this.#acknowledgeFirst().then(
      () => {
        if (this.#underWay.length > 0) this.#acknowledgeSoon();
      },
      // The failed append stays first in line, for the next who waits.
      () => {},
    );
  }

  /** Waits for the oldest append and acknowledges it; several callers wait for the same one. */
  #acknowledgeFirst(): Promise<void> {
    this.#acknowledging ??= this.#settleFirst().finally(() => (this.#acknowledging = null));
    return this.#acknowledging;
  }

  async #settleFirst(): Promise<void> {
    const [first] = this.#underWay;
    if (first === undefined) return;
    let result: AppendResult;
    try {
      result = await first.result;
    } catch (error) {
      throw withLine(error, first.group);
    }
    await this.#options.acknowledge(acknowledgementsOf(result));
    this.#underWay.shift();
    this.#underWayBytes -= first.sizeBytes;
    this.#headId = result.head.headId;
    this.#isHeadKnown = true;
  }

  #appendOptions(): AppendOptions {
    const { durability, expectHead, idempotencyKey, signal } = this.#options;
    const head = this.#isHeadKnown ? this.#headId : (expectHead ?? null);
    const suffix = this.#appendCount === 1 ? "" : `:${this.#appendCount}`;
    return {
      signal: AbortSignal.any([signal, this.#abandoned.signal]),
      ...(durability === null ? {} : { durability }),
      ...(expectHead === undefined ? {} : { expect: { head } }),
      ...(idempotencyKey === null ? {} : { idempotencyKey: `${idempotencyKey}${suffix}` }),
    };
  }
}

function acknowledgementsOf({ records, head, durability }: AppendResult): readonly Acknowledgement[] {
  let headId: string | null = null;
  return records.map(({ seq, id, parentId, side }, index) => {
    // A side record hangs on the head, so the first ones of a batch say what it was.
    if (!side) headId = id;
    else if (index === 0) headId = parentId;
    return { seq, id, headId: index === records.length - 1 ? head.headId : headId, durability };
  });
}

/** The same error with the line it is about. */
function withLine(error: unknown, group: readonly DraftLine[]): unknown {
  if (!ThroughlineError.isInstance(error)) return error;
  const { index } = error.details;
  const exact = typeof index === "number" ? group[index]?.line : group.length === 1 ? group[0]?.line : undefined;
  const place = exact === undefined ? `Lines ${group[0]?.line} to ${group.at(-1)?.line}` : `Line ${exact}`;
  return new ThroughlineError(error.code, `${place}: ${error.message}`, {
    details: { ...error.details, line: exact ?? group[0]?.line ?? null },
    remedy: error.remedy,
    cause: error,
    ...(error.outcome === null ? {} : { outcome: error.outcome }),
  });
}
