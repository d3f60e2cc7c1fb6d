import { abortedBefore, assertKnownOptions, optionKinds, type OptionTable } from "@throughline/core/internal";
import {
  ThroughlineError,
  type AppendOptions,
  type AppendResult,
  type Durability,
  type SessionRef,
  type SessionStore,
} from "@throughline/core";
import { DraftQueue } from "./draft-queue.ts";
import type { DraftLine } from "./read-drafts.ts";

/** Describes one stored record to the caller of `appendLines`; acknowledgements come in the order of the input. */
export interface Acknowledgement {
  /** Holds the record's sequence number in the session, from 1. */
  readonly seq: number;
  /** Holds the record's id: the one the draft states, or one that the store created. */
  readonly id: string;
  /** Holds the session's head after this record was appended; null while the session has no head. */
  readonly headId: string | null;
  /** States what the record survives: the death of the process, or a power cut. */
  readonly durability: Durability;
}

/** Sets how `appendLines` groups lines and what each append must satisfy. */
export interface AppendLinesOptions {
  /** Sets how many lines one append holds; null makes each line an append. */
  readonly batch: number | null;
  /** States what each append must survive; null uses the store's setting. */
  readonly durability: Durability | null;
  /**
   * States the head that the first append expects; undefined accepts any head. Each later append expects the head that
   * its predecessor left.
   */
  readonly expectHead: string | null | undefined;
  /** Sets the idempotency key of the first append. Append number n uses the key with `:n` added; null sets none. */
  readonly idempotencyKey: string | null;
  /** Stops new appends once it is aborted; appends under way are still waited for. */
  readonly signal: AbortSignal;
  /** Receives the acknowledgements once their records are durable. */
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

/** Limits the appends under way. This many let a store flush once for a large group of them. */
const maxUnderWay = 256;
const maxUnderWayBytes = 8 * 1024 * 1024;
/** A store may refuse a line of this size for its size, so the line is appended alone. */
const largeLineBytes = 1024 * 1024;

/**
 * Appends drafts to a session as the input yields them. When it fails, the caller must end the input.
 * Each line is an append by itself, so a torn file costs one record and not a group of records. Up to 256 appends are
 * under way at once, in order, so the store can flush once for all of them.
 *
 * A line that the store refuses stops the run: the lines before it are stored and acknowledged, and no line after it is
 * applied. A store may refuse a line for its content: an id that is in use, or a size above the limit. A line that
 * states an id or has 1 MiB or more is therefore appended alone. The same holds for every append when a batch size, an
 * idempotency key or an expected head is set.
 * @throws {ThroughlineError} INPUT_INVALID for an option or a line, with `details.line`, and errors of the store and
 *   of `acknowledge`
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
  // A reading failure is thrown last, so that the lines before the unreadable one are stored and acknowledged.
  queue.throwFailure();
}

interface UnderWay {
  readonly group: readonly DraftLine[];
  readonly sizeBytes: number;
  readonly result: Promise<AppendResult>;
}

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

  /** Waits while too many appends are under way, and for all of them when this append must go alone. */
  async submit(group: readonly DraftLine[]): Promise<void> {
    const isAlone = this.#mustGoAlone(group);
    while (this.#underWay.length > 0 && (isAlone || this.#isFull())) await this.#acknowledgeFirst();
    const { signal } = this.#options;
    if (signal.aborted) throw abortedBefore("all lines were appended", signal);
    this.#appendCount += 1;
    const sizeBytes = group.reduce((sum, line) => sum + line.sizeBytes, 0);
    const drafts = group.map(({ draft }) => draft);
    const result = this.#store.append(this.#ref, drafts, this.#appendOptions());
    // `#settleFirst` awaits this promise later; the empty handler prevents an unhandled rejection until then.
    result.catch(() => {});
    this.#underWay.push({ group, sizeBytes, result });
    this.#underWayBytes += sizeBytes;
    if (isAlone) await this.finish();
    else this.#acknowledgeSoon();
  }

  async finish(): Promise<void> {
    while (this.#underWay.length > 0 || this.#acknowledging !== null) await this.#acknowledgeFirst();
  }

  /**
   * After a failure, aborts appends that have not started and waits for the others, so none runs after `appendLines`
   * ends.
   */
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

  /** Acknowledges in the background, so that a writer that pauses still receives its acknowledgements. */
  #acknowledgeSoon(): void {
    if (this.#acknowledging !== null) return;
    void this.#acknowledgeFirst().then(
      () => {
        if (this.#underWay.length > 0) this.#acknowledgeSoon();
      },
      // The failed append stays first in the queue, so the next caller that waits gets its error.
      () => {},
    );
  }

  /** Shares one promise between callers, so that no append is acknowledged twice. */
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
    // A side record's parent is the head, so the first side record of a batch states the head before it.
    if (!side) headId = id;
    else if (index === 0) headId = parentId;
    return { seq, id, headId: index === records.length - 1 ? head.headId : headId, durability };
  });
}

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
