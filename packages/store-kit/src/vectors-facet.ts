import type { VectorsFacet } from "@throughline/core";
import type { NearestHit, NearestQuery, VectorScope } from "@throughline/core/internal";
import { ask } from "./backend-sessions.ts";
import type { HandleLife } from "./handle-life.ts";
import type { NumberedCode, NumberedVector, SessionNumber, ShownSession, VectorBackend } from "./vector-backend.ts";
import { assertForgetOptions, assertNearestQuery, assertPendingQuery, assertVectorPut } from "./vector-checks.ts";
import { CodeTable, cosine, keptVector, type Nearness, signsOf } from "./vector-codes.ts";

/** The signs of the numbers choose this many vectors, which are then compared by their numbers. */
const rescored = 200;
const codesAtOnce = 500;
/** The codes of this many scopes and models are kept in memory. */
const mostTables = 8;

/** Creates the facet over a backend. Every store has the same checks, codes and comparison. */
export function createVectorsFacet(backend: VectorBackend, life: HandleLife): VectorsFacet {
  const tables = new KnownTables(backend);
  return {
    async put(ref, put, options = {}) {
      assertVectorPut(ref, put, options);
      life.begin(options.signal);
      const vectors = put.vectors.map(keptVector);
      return life.track(async () => ask(() => backend.put(ref, { ...put, vectors }), "unknown"));
    },
    async nearest(query) {
      assertNearestQuery(query);
      life.begin(query.signal);
      return life.track(() => nearest(backend, tables, life, query));
    },
    async forget(scope, options = {}) {
      assertForgetOptions(scope, options);
      life.begin();
      return life.track(async () => ask(() => backend.forget(scope, options.keep ?? null), "unknown"));
    },
    async pending(scope, query) {
      assertPendingQuery(scope, query);
      life.begin(query.signal);
      return life.track(async () => ask(() => backend.pending(scope, { ...query, limit: query.limit ?? 20 }), null));
    },
  };
}

async function nearest(
  backend: VectorBackend,
  tables: KnownTables,
  life: HandleLife,
  query: NearestQuery,
): Promise<readonly NearestHit[]> {
  const { namespace, agentId, model, limit = 50 } = query;
  const vector = withNormOne(query.vector);
  const pause = async (): Promise<void> => {
    await new Promise((resolve) => setImmediate(resolve));
    life.begin(query.signal);
  };
  const code = signsOf(vector);
  const known = await tables.current({ namespace, agentId }, model, pause);
  if (known === null) return [];
  const shown = shownByOwner(await ask(() => backend.shown(query), null));
  const isWanted = (owner: number): boolean => shown.has(known.owners[owner] ?? "");
  const near = await known.codes.byDistance(code, isWanted, pause);
  return rated({ backend, known, shown, near, vector, pause }, query, limit);
}

interface Comparison {
  readonly backend: VectorBackend;
  readonly known: KnownTable;
  readonly shown: ReadonlyMap<SessionNumber, readonly ShownSession[]>;
  readonly near: Nearness;
  readonly vector: Float32Array;
  readonly pause: () => Promise<void>;
}

/** Compares the chosen vectors by their numbers. Where many of the chosen are gone, the next ones are taken. */
async function rated(
  { backend, known, shown, near, vector, pause }: Comparison,
  query: NearestQuery,
  limit: number,
): Promise<readonly NearestHit[]> {
  const hits: NearestHit[] = [];
  let seen = 0;
  while (seen < rescored) {
    const numbers = await near.take(rescored - seen);
    if (numbers.length === 0) break;
    const gone = new Set(numbers);
    for (let from = 0; from < numbers.length; from += rescored) {
      const some = numbers.slice(from, from + rescored);
      for (const found of await ask(() => backend.vectors(query, query.model, some), null)) {
        gone.delete(found.number);
        const session = shown.get(found.owner)?.find(({ toSeq }) => found.lastSeq <= toSeq);
        if (session === undefined || found.values.length !== vector.length) continue;
        seen += 1;
        hits.push(hitOf(found, session, cosine(vector, found)));
      }
      await pause();
    }
    if (gone.size > 0) await known.codes.remove(gone, pause);
  }
  return hits.toSorted((one, other) => other.score - one.score || other.firstSeq - one.firstSeq).slice(0, limit);
}

function hitOf(
  { firstSeq, lastSeq, part }: NumberedVector,
  { ref, sessionId }: ShownSession,
  score: number,
): NearestHit {
  return { ref, sessionId, firstSeq, lastSeq, part, score };
}

function withNormOne(vector: Float32Array): Float32Array {
  let squares = 0;
  for (const value of vector) squares += value * value;
  const norm = Math.sqrt(squares);
  return vector.map((value) => value / norm);
}

function shownByOwner(shown: readonly ShownSession[]): ReadonlyMap<SessionNumber, readonly ShownSession[]> {
  const byOwner = new Map<SessionNumber, ShownSession[]>();
  for (const one of shown) {
    const known = byOwner.get(one.owner);
    if (known === undefined) byOwner.set(one.owner, [one]);
    else known.push(one);
  }
  return byOwner;
}

interface KnownTable {
  readonly codes: CodeTable;
  /** Holds the owners by the small numbers that the codes have. */
  readonly owners: SessionNumber[];
  readonly ownerNumbers: Map<SessionNumber, number>;
}

/**
 * Keeps codes in memory, and reads those that were added since. Codes of deleted vectors are removed when a search meets them, so
 * that a deletion costs nothing here, whichever process made it.
 */
class KnownTables {
  readonly #backend: VectorBackend;
  readonly #tables = new Map<string, KnownTable>();

  constructor(backend: VectorBackend) {
    this.#backend = backend;
  }

  /** Returns the codes of a model in a scope; null without any. */
  async current(scope: VectorScope, model: string, pause: () => Promise<void>): Promise<KnownTable | null> {
    const name = JSON.stringify([scope.namespace, scope.agentId, model]);
    for (;;) {
      const after = this.#tables.get(name)?.codes.lastNumber ?? 0;
      const rows = await ask(() => this.#backend.codes(scope, model, after, codesAtOnce), null);
      // Another search may have added the same codes during the wait.
      const known = this.#tables.get(name) ?? newTable(rows);
      if (known === null) return null;
      const last = known.codes.lastNumber;
      for (const { number, owner, code } of rows)
        if (number > last) known.codes.add(number, ownerNumber(known, owner), code);
      this.#keep(name, known);
      if (rows.length < codesAtOnce) return known;
      await pause();
    }
  }

  #keep(name: string, known: KnownTable): void {
    this.#tables.delete(name);
    this.#tables.set(name, known);
    const [oldest] = this.#tables.keys();
    if (this.#tables.size > mostTables && oldest !== undefined) this.#tables.delete(oldest);
  }
}

function newTable([first]: readonly NumberedCode[]): KnownTable | null {
  return first === undefined ? null : { codes: new CodeTable(first.code.length), owners: [], ownerNumbers: new Map() };
}

function ownerNumber({ owners, ownerNumbers }: KnownTable, owner: SessionNumber): number {
  const known = ownerNumbers.get(owner);
  if (known !== undefined) return known;
  ownerNumbers.set(owner, owners.length);
  return owners.push(owner) - 1;
}

/** Returns the mark of a session: it changes with the session at an address and with each removal of content. */
export function vectorMark(session: SessionNumber, removals: number): string {
  return `${session}.${removals}`;
}
