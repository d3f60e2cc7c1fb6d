import type { Clock, Durability, SessionEvent, SessionRef } from "@throughline/core";
import {
  causeText,
  abortedBefore,
  KeyedQueues,
  quote,
  refused,
  sessionRefText,
  systemClock,
  systemRandom,
  type WriteOutcome,
} from "@throughline/core/internal";
import { ThroughlineError } from "@throughline/core";
import type { HandleLife } from "./handle-life.ts";
import { chain, type Awaitable, isPending } from "./awaitable.ts";
import { placeOf } from "./namespace-fields.ts";
import type { FieldWrites, KeptSession, KeptRecord, SessionRow, StoreBackend, StoreChange } from "./store-backend.ts";

/** Holds what a write does, its result, and the events to announce after the commit. */
export interface PlannedWrite<Result> {
  /** Holds the commit; null writes nothing. */
  readonly change:
    | (Omit<StoreChange, "namespace" | "durability" | "expectFields" | "fields"> &
        Partial<Pick<StoreChange, "durability" | "expectFields" | "fields">>)
    | null;
  readonly result: Result;
  readonly events: readonly SessionEvent[];
}

/** A write that other processes overtake this often gives up: each time, one of them has written. */
const mostAttempts = 200;
const longestPauseMs = 20;
const none: FieldWrites = [];

/** Reads and writes sessions of a backend, and repeats a write that another process has overtaken. */
export class BackendSessions {
  readonly backend: StoreBackend;
  readonly #life: HandleLife;
  readonly #clock: Clock;
  readonly #durability: Durability;
  readonly #queues = new KeyedQueues();
  readonly #handle = systemRandom.uuid();
  #versions = 0;

  constructor(backend: StoreBackend, life: HandleLife, clock: Clock, durability: Durability) {
    this.backend = backend;
    this.#life = life;
    this.#clock = clock;
    this.#durability = durability;
  }

  /** Returns a text that no handle has returned before. */
  newVersion(): string {
    this.#versions++;
    return `${this.#handle}.${this.#versions.toString(36)}`;
  }

  /**
   * Reads the session at an address, plans, and commits the plan. The writes of this handle to one session run in
   * order. When another process has written meanwhile, the session is read and planned again.
   * @throws {ThroughlineError} STORE_LOCKED, ABORTED, and what the plan throws
   */
  write<Result>(
    ref: SessionRef,
    plan: (found: KeptSession | null, nowMs: number) => Awaitable<PlannedWrite<Result>>,
    signal?: AbortSignal,
  ): Awaitable<Result> {
    const attempt = (): Awaitable<Done<Result> | null> => {
      if (signal?.aborted === true) throw abortedBefore("the write began", signal);
      const found = this.#findForWrite(ref);
      const planned = chain(found, (session) => plan(session, this.#clock.nowMs()));
      return isPending(planned) ? planned.then((one) => this.#commit(ref, one)) : this.#commit(ref, planned);
    };
    const first = this.#queues.isIdle ? attempt() : null;
    // A backend that answers at once needs no queue, because no other operation runs in between.
    if (first !== null && !isPending(first)) return first.result;
    return this.#life.track(() => this.#queues.run(sessionRefText(ref), () => repeated(ref, attempt, first)));
  }

  #findForWrite(ref: SessionRef): Awaitable<KeptSession | null> {
    try {
      return guarded(this.backend.find(ref), "not-applied");
    } catch (cause) {
      throw storeError(cause, "not-applied");
    }
  }

  #commit<Result>(ref: SessionRef, planned: PlannedWrite<Result>): Awaitable<Done<Result> | null> {
    const { change } = planned;
    if (change === null) return planned;
    const { namespace } = ref;
    const { expect, expectFields = none, fields = none, sessions, durability = this.#durability } = change;
    let isWritten: Awaitable<boolean>;
    try {
      isWritten = guarded(
        this.backend.commit({ namespace, expect, expectFields, fields, sessions, durability }),
        "unknown",
      );
    } catch (cause) {
      throw storeError(cause, "unknown");
    }
    return isPending(isWritten)
      ? isWritten.then((isDone) => this.#committed(isDone, planned))
      : this.#committed(isWritten, planned);
  }

  #committed<Result>(isWritten: boolean, planned: PlannedWrite<Result>): Done<Result> | null {
    if (!isWritten) return null;
    if (planned.events.length > 0) this.#life.announce(...planned.events);
    return planned;
  }

  /** Returns the session at an address, or null. */
  find(ref: SessionRef): Awaitable<KeptSession | null> {
    return ask(() => this.backend.find(ref), null);
  }

  /** Returns the values of a session's fields. */
  sessionFields(row: SessionRow, names: readonly string[]): Awaitable<readonly (string | null)[]> {
    return names.length === 0 ? [] : ask(() => this.backend.sessionFields(row, names), "not-applied");
  }

  /** Returns the seqs of the records with these ids, null for an id that no record has. */
  seqsOf(row: SessionRow, ids: readonly string[]): Awaitable<readonly (number | null)[]> {
    return ids.length === 0 ? [] : ask(() => this.backend.seqsOf(row, ids), "not-applied");
  }

  /** Returns the records between two seqs, both included; fewer when the session was deleted meanwhile. */
  records(row: SessionRow, fromSeq: number, toSeq: number): Awaitable<readonly KeptRecord[]> {
    return ask(() => this.backend.records(row, fromSeq, toSeq), null);
  }

  /** Returns the function that reads the fields of a namespace. */
  fieldsOf(namespace: string): (names: readonly string[]) => Awaitable<readonly (string | null)[]> {
    return (names) => ask(() => this.backend.namespaceFields(namespace, names), "not-applied");
  }

  /** Returns a session that was found before, wherever it is now; null after a purge. */
  refound(row: SessionRow): Awaitable<SessionRow | null> {
    const same = (found: KeptSession | null): SessionRow | null => (found?.row.id === row.id ? found.row : null);
    return chain(this.find(row.ref), (there) => {
      if (same(there) !== null) return same(there);
      const place = placeOf(row, this.fieldsOf(row.ref.namespace));
      return chain(place, (ref) => (ref === null ? null : chain(this.find(ref), same)));
    });
  }
}

interface Done<Result> {
  readonly result: Result;
}

/** Repeats an attempt until it was not overtaken; `first` is one that has begun. */
async function repeated<Result>(
  ref: SessionRef,
  attempt: () => Awaitable<Done<Result> | null>,
  first: Awaitable<Done<Result> | null>,
): Promise<Result> {
  let done = await (first ?? attempt());
  for (let count = 1; ; count++) {
    if (done !== null) return done.result;
    if (count === mostAttempts)
      throw refused("STORE_LOCKED", `Other writers changed the session ${quote(ref.key)} ${count} times meanwhile.`, {
        key: ref.key,
      });
    // Writers that were overtaken together must not try again together.
    await systemClock.sleep((Math.min(count, longestPauseMs) * systemRandom.uint32()) / 2 ** 32);
    done = await attempt();
  }
}

/**
 * Asks the backend, and turns an error of its database into a typed error. `outcome` is that of a failed write; null for
 * a read that belongs to no write.
 */
export function ask<Value>(work: () => Awaitable<Value>, outcome: WriteOutcome | null): Awaitable<Value> {
  try {
    return guarded(work(), outcome);
  } catch (cause) {
    throw storeError(cause, outcome);
  }
}

function guarded<Value>(value: Awaitable<Value>, outcome: WriteOutcome | null): Awaitable<Value> {
  if (!isPending(value)) return value;
  return value.then(undefined, (cause: unknown) => {
    throw storeError(cause, outcome);
  });
}

function storeError(cause: unknown, outcome: WriteOutcome | null): ThroughlineError {
  const stated = outcome === null ? {} : { outcome };
  if (!ThroughlineError.isInstance(cause)) {
    const why = causeText(cause);
    return new ThroughlineError("STORE_IO", `The database of the store failed: ${why}`, { ...stated, cause });
  }
  if (outcome === null || cause.outcome !== null) return cause;
  const { code, message, details, remedy, retryable } = cause;
  return new ThroughlineError(code, message, { outcome, details, remedy, retryable, cause });
}
