import type { PayloadCodec, VectorsFacet } from "@throughline/core";
import type { NearestHit, NearestQuery, VectorScope } from "@throughline/core/internal";
import { ask } from "./backend-sessions.ts";
import type { HandleLife } from "./handle-life.ts";
import type {
  KeptPut,
  NumberedCode,
  NumberedVector,
  SessionNumber,
  ShownSession,
  VectorBackend,
} from "./vector-backend.ts";
import { assertForgetOptions, assertNearestQuery, assertPendingQuery, assertVectorPut } from "./vector-checks.ts";
import { createVectorCoder, type VectorCoder } from "./vector-coder.ts";
import { CodeTable, cosine, keptVector, type Nearness, signsOf } from "./vector-codes.ts";

/** The signs of the numbers choose this many vectors, which are then compared by their numbers. */
const rescored = 200;
const codesAtOnce = 500;
/** The codes of this many scopes and models are kept in memory. */
const mostTables = 8;

/** Creates the facet over a backend. Every store has the same checks, codes and comparison. */
export function createVectorsFacet(
  backend: VectorBackend,
  life: HandleLife,
  codec: PayloadCodec | undefined,
): VectorsFacet {
  const coder = createVectorCoder(codec);
  const tables = new KnownTables(backend, coder);
  return {
    async put(ref, put, options = {}) {
      assertVectorPut(ref, put, options);
      life.begin(options.signal);
      const { namespace, agentId } = ref;
      const kept: KeptPut = {
        ...put,
        vectors: put.vectors.map(keptVector),
        seal: (vector, sessionId) => coder?.seal(vector, { namespace, agentId, model: put.model, sessionId }) ?? vector,
      };
      return life.track(async () => ask(() => backend.put(ref, kept), "unknown"));
    },
    async nearest(query) {
      assertNearestQuery(query);
      life.begin(query.signal);
      return life.track(() => nearest({ backend, coder, tables, life }, query));
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

interface FacetParts {
  readonly backend: VectorBackend;
  readonly coder: VectorCoder | null;
  readonly tables: KnownTables;
  readonly life: HandleLife;
}

async function nearest(
  { backend, coder, tables, life }: FacetParts,
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
  return rated({ backend, coder, known, shown, near, vector, pause }, query, limit);
}

interface Comparison {
  readonly backend: VectorBackend;
  readonly coder: VectorCoder | null;
  readonly known: KnownTable;
  readonly shown: ReadonlyMap<SessionNumber, readonly ShownSession[]>;
  readonly near: Nearness;
  readonly vector: Float32Array;
  readonly pause: () => Promise<void>;
}

/** Compares the chosen vectors by their numbers. Where many of the chosen are gone, the next ones are taken. */
async function rated(
  { backend, coder, known, shown, near, vector, pause }: Comparison,
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
      for (const kept of await ask(() => backend.vectors(query, query.model, some), null)) {
        const found = coder === null ? kept : decoded(coder, known, kept, query);
        if (found === null) continue;
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

function decoded(
  coder: VectorCoder,
  { sessionIds }: KnownTable,
  kept: NumberedVector,
  { namespace, agentId, model }: NearestQuery,
): NumberedVector | null {
  const sessionId = sessionIds.get(kept.owner);
  return sessionId === undefined ? null : coder.numbers(kept, { namespace, agentId, model, sessionId });
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
  /** Holds the ids of the owners under a codec. */
  readonly sessionIds: Map<SessionNumber, string>;
}

/**
 * Keeps codes in memory, and reads those that were added since. Codes of deleted vectors are removed when a search meets them, so
 * that a deletion costs nothing here, whichever process made it.
 */
class KnownTables {
  readonly #backend: VectorBackend;
  readonly #coder: VectorCoder | null;
  readonly #tables = new Map<string, KnownTable>();

  constructor(backend: VectorBackend, coder: VectorCoder | null) {
    this.#backend = backend;
    this.#coder = coder;
  }

  /** Returns the codes of a model in a scope; null without any. */
  async current(scope: VectorScope, model: string, pause: () => Promise<void>): Promise<KnownTable | null> {
    const name = JSON.stringify([scope.namespace, scope.agentId, model]);
    for (;;) {
      const after = this.#tables.get(name)?.codes.lastNumber ?? 0;
      const kept = await ask(() => this.#backend.codes(scope, model, after, codesAtOnce), null);
      const { rows, sessionIds } = await this.#decoded(scope, model, kept);
      // Another search may have added the same codes during the wait.
      const known = this.#tables.get(name) ?? newTable(rows);
      if (known === null) return null;
      for (const [owner, sessionId] of sessionIds) known.sessionIds.set(owner, sessionId);
      const last = known.codes.lastNumber;
      for (const { number, owner, code } of rows)
        if (number > last) known.codes.add(number, ownerNumber(known, owner), code);
      this.#keep(name, known);
      if (rows.length < codesAtOnce) return known;
      await pause();
    }
  }

  /** A code that does not decode is entered as zeros, and goes when a search finds that its numbers do not decode either. */
  async #decoded(
    { namespace, agentId }: VectorScope,
    model: string,
    kept: readonly NumberedCode[],
  ): Promise<{
    readonly rows: readonly NumberedCode[];
    readonly sessionIds: ReadonlyMap<SessionNumber, string>;
  }> {
    const coder = this.#coder;
    if (coder === null || kept.length === 0) return { rows: kept, sessionIds: new Map() };
    const owners = [...new Set(kept.map(({ owner }) => owner))];
    const sessionIds = await ask(() => this.#backend.sessionIds({ namespace, agentId }, owners), null);
    const unknown = signsOf(new Float32Array(Number(model.slice(model.lastIndexOf("@") + 1))));
    const rows = kept.map((row) => {
      const sessionId = sessionIds.get(row.owner);
      const code = sessionId === undefined ? null : coder.code(row.code, { namespace, agentId, model, sessionId });
      return { ...row, code: code ?? unknown };
    });
    return { rows, sessionIds };
  }

  #keep(name: string, known: KnownTable): void {
    this.#tables.delete(name);
    this.#tables.set(name, known);
    const [oldest] = this.#tables.keys();
    if (this.#tables.size > mostTables && oldest !== undefined) this.#tables.delete(oldest);
  }
}

function newTable([first]: readonly NumberedCode[]): KnownTable | null {
  if (first === undefined) return null;
  return { codes: new CodeTable(first.code.length), owners: [], ownerNumbers: new Map(), sessionIds: new Map() };
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
