import type { SessionRef } from "@throughline/core";
import type { PendingRange, PendingVectors, VectorScope } from "@throughline/core/internal";
import type {
  KeptPut,
  KeptVector,
  NumberedCode,
  NumberedVector,
  ShownSession,
  VectorBackend,
} from "./vector-backend.ts";
import { vectorMark } from "./vectors-facet.ts";

/** Holds what a table must know of a session. */
export interface VectorSession {
  /** Identifies the session for as long as it exists. */
  readonly id: string;
  /** States the address of the session. */
  readonly ref: SessionRef;
  /** States the id of the session. */
  readonly sessionId: string;
  /** States the seq of the newest record; 0 without one. */
  readonly lastSeq: number;
  /** States when the session changed last, in milliseconds since 1970. */
  readonly updatedAtMs: number;
}

/** Looks up the sessions of a store. */
export interface VectorSessions {
  /** Returns the session at an address; null without one. */
  at(ref: SessionRef): VectorSession | null;
  /** Returns the session that `id` identifies; null without one. */
  withId(id: string): VectorSession | null;
  /** Lists the sessions of a scope. */
  of(scope: VectorScope): readonly VectorSession[];
}

interface Gap {
  readonly fromSeq: number;
  readonly toSeq: number;
}

/** Holds how far a session has vectors of one model. */
export interface VectorProgress {
  /** States the seq up to which the session has had vectors. */
  coveredSeq: number;
  /** States the seq at which the next range starts when the session grows. */
  resumeSeq: number;
  /** Lists the ranges whose vectors a removal took. They may overlap. */
  gaps: readonly Gap[];
}

interface OwnedVector extends KeptVector {
  readonly number: number;
  readonly owner: string;
}

interface SessionVectors {
  readonly byModel: Map<string, { readonly progress: VectorProgress; vectors: readonly OwnedVector[] }>;
  removals: number;
}

/** Keeps vectors in memory, for stores whose sessions are there. */
export class VectorTable {
  readonly #sessions = new Map<string, SessionVectors>();
  readonly #byNumber = new Map<number, OwnedVector & { readonly model: string }>();
  /** Lists the vectors of each scope and model in the order of their numbers, also those that were deleted since. */
  readonly #order = new Map<string, number[]>();
  #lastNumber = 0;

  /** Deletes the vectors of records whose content was replaced, for the same commit. */
  redact(id: string, seqs: readonly number[]): void {
    if (seqs.length === 0) return;
    const session = this.#session(id);
    session.removals += 1;
    for (const kept of session.byModel.values()) {
      const hit = kept.vectors.filter((one) => seqs.some((seq) => seq >= one.firstSeq && seq <= one.lastSeq));
      this.#remove(kept, hit);
      const gone = hit.map(({ firstSeq, lastSeq }) => ({ fromSeq: firstSeq, toSeq: lastSeq }));
      kept.progress.gaps = [...kept.progress.gaps, ...gone];
    }
  }

  /** Deletes all vectors of a session that was purged. */
  drop(id: string): void {
    for (const { vectors } of this.#sessions.get(id)?.byModel.values() ?? [])
      for (const { number } of vectors) this.#byNumber.delete(number);
    this.#sessions.delete(id);
  }

  /** Returns a backend over the table and the sessions of a store. */
  backend(sessions: VectorSessions): VectorBackend {
    return {
      put: (ref, put) => this.#put(sessions.at(ref), put),
      forget: (scope, keep) => this.#forget(sessions.of(scope), keep),
      pending: (scope, { model, limit }) => this.#pending(sessions.of(scope), model, limit),
      shown: ({ key, state = "any", ...scope }) =>
        sessions.of(scope).flatMap(({ id, ref, sessionId }): readonly ShownSession[] => {
          const isArchived = ref.archiveId !== undefined;
          const isWanted =
            (key === undefined || ref.key === key) && (state === "any" || (state === "archived") === isArchived);
          return isWanted ? [{ owner: id, toSeq: Infinity, ref, sessionId }] : [];
        }),
      codes: (scope, model, after, limit) => this.#codes(orderName(scope, model), after, limit),
      sessionIds: (_scope, owners) =>
        new Map(
          owners.flatMap((owner) => {
            const session = sessions.withId(String(owner));
            return session === null ? [] : [[owner, session.sessionId] as const];
          }),
        ),
      vectors: (scope, model, numbers) => this.#vectors(sessions.of(scope), model, numbers),
    };
  }

  #session(id: string): SessionVectors {
    const known = this.#sessions.get(id) ?? { byModel: new Map(), removals: 0 };
    this.#sessions.set(id, known);
    return known;
  }

  #put(session: VectorSession | null, put: KeptPut): boolean {
    if (session === null || put.toSeq > session.lastSeq) return false;
    const known = this.#session(session.id);
    if (put.mark !== vectorMark(session.id, known.removals)) return false;
    const kept = known.byModel.get(put.model) ?? {
      progress: { coveredSeq: 0, resumeSeq: 1, gaps: [] },
      vectors: [],
    };
    known.byModel.set(put.model, kept);
    const { fromSeq, toSeq, resumeSeq, model } = put;
    this.#remove(
      kept,
      kept.vectors.filter(({ firstSeq, lastSeq }) => lastSeq >= fromSeq && firstSeq <= toSeq),
    );
    const added = put.vectors.map((vector) => ({
      ...put.seal(vector, session.sessionId),
      number: ++this.#lastNumber,
      owner: session.id,
    }));
    for (const vector of added) this.#byNumber.set(vector.number, { ...vector, model });
    this.#append(
      orderName(session.ref, model),
      added.map(({ number }) => number),
    );
    kept.vectors = [...kept.vectors, ...added];
    const { progress } = kept;
    progress.gaps = progress.gaps.filter((gap) => gap.fromSeq < fromSeq || gap.toSeq > toSeq);
    if (fromSeq <= progress.coveredSeq + 1 && toSeq > progress.coveredSeq)
      Object.assign(progress, { coveredSeq: toSeq, resumeSeq });
    return true;
  }

  #remove(kept: { vectors: readonly OwnedVector[] }, removed: readonly OwnedVector[]): void {
    if (removed.length === 0) return;
    for (const { number } of removed) this.#byNumber.delete(number);
    const gone = new Set(removed);
    kept.vectors = kept.vectors.filter((one) => !gone.has(one));
  }

  #forget(sessions: readonly VectorSession[], keep: string | null): number {
    let count = 0;
    for (const { id } of sessions) {
      const known = this.#sessions.get(id);
      for (const [model, kept] of known?.byModel ?? []) {
        if (model === keep) continue;
        count += kept.vectors.length;
        this.#remove(kept, kept.vectors);
        known?.byModel.delete(model);
      }
    }
    return count;
  }

  #pending(sessions: readonly VectorSession[], model: string, limit: number): PendingVectors {
    const ranges: PendingRange[] = [];
    let records = 0;
    let hasOthers = false;
    for (const session of sessions.toSorted((one, other) => other.updatedAtMs - one.updatedAtMs)) {
      const known = this.#sessions.get(session.id);
      hasOthers ||= known !== undefined && [...known.byModel.keys()].some((name) => name !== model);
      const found = pendingOf(session, known?.byModel.get(model)?.progress, known?.removals ?? 0);
      ranges.push(...found.ranges);
      records += found.records;
    }
    return { ranges: ranges.slice(0, limit), records, hasOthers };
  }

  #append(name: string, numbers: readonly number[]): void {
    const order = this.#order.get(name) ?? [];
    order.push(...numbers);
    this.#order.set(name, order);
  }

  #codes(name: string, after: number, limit: number): readonly NumberedCode[] {
    const order = this.#order.get(name) ?? [];
    const found: NumberedCode[] = [];
    let deleted = 0;
    for (let index = firstAbove(order, after); index < order.length && found.length < limit; index++) {
      const one = this.#byNumber.get(order[index] ?? 0);
      if (one === undefined) deleted += 1;
      else found.push(one);
    }
    if (deleted > limit)
      this.#order.set(
        name,
        order.filter((number) => this.#byNumber.has(number)),
      );
    return found;
  }

  #vectors(sessions: readonly VectorSession[], model: string, numbers: readonly number[]): readonly NumberedVector[] {
    const ids = new Set(sessions.map(({ id }) => id));
    return numbers.flatMap((number) => {
      const found = this.#byNumber.get(number);
      return found?.model === model && ids.has(found.owner) ? [found] : [];
    });
  }
}

/** Returns the ranges of a session that have no vectors, and the number of their records. */
export function pendingOf(
  { id, ref, sessionId, lastSeq }: VectorSession,
  progress: VectorProgress = { coveredSeq: 0, resumeSeq: 1, gaps: [] },
  removals: number,
): Pick<PendingVectors, "ranges" | "records"> {
  const { coveredSeq, resumeSeq } = progress;
  const gaps = merged(progress.gaps);
  const place = { ref, sessionId, mark: vectorMark(id, removals) };
  const ranges = gaps.map(({ fromSeq, toSeq }) => ({ ...place, fromSeq, toSeq, coveredSeq: fromSeq - 1 }));
  const inGaps = gaps.reduce((sum, { fromSeq, toSeq }) => sum + toSeq - fromSeq + 1, 0);
  if (coveredSeq < lastSeq) ranges.push({ ...place, fromSeq: resumeSeq, toSeq: lastSeq, coveredSeq });
  return { ranges, records: inGaps + Math.max(0, lastSeq - coveredSeq) };
}

function orderName({ namespace, agentId }: VectorScope, model: string): string {
  return JSON.stringify([namespace, agentId, model]);
}

/** Returns the index of the first number above a limit, in numbers that ascend. */
function firstAbove(numbers: readonly number[], limit: number): number {
  let [from, to] = [0, numbers.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((numbers[middle] ?? 0) > limit) to = middle;
    else from = middle + 1;
  }
  return from;
}

/** Joins ranges that overlap or touch. The parts of one exchange share records. */
function merged(gaps: readonly Gap[]): readonly Gap[] {
  const joined: Gap[] = [];
  for (const gap of gaps.toSorted((one, other) => one.fromSeq - other.fromSeq)) {
    const last = joined.at(-1);
    if (last === undefined || gap.fromSeq > last.toSeq + 1) joined.push(gap);
    else joined[joined.length - 1] = { fromSeq: last.fromSeq, toSeq: Math.max(last.toSeq, gap.toSeq) };
  }
  return joined;
}
