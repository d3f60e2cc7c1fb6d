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
import { createVectorCoder, type Undecoded, type VectorCoder } from "./vector-coder.ts";
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
        if (found === "lost") continue;
        gone.delete(kept.number);
        if (found === "no key") continue;
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
): NumberedVector | Undecoded {
  const sessionId = sessionIds.get(kept.owner);
  return sessionId === undefined ? "lost" : coder.numbers(kept, { namespace, agentId, model, sessionId });
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
  /** Holds the codes of each owner whose key is not in the keyring. */
  readonly keyless: Map<SessionNumber, NumberedCode[]>;
  /** Numbers the last code that was read, which a search may have removed since. */
  lastNumber: number;
  searches: number;
}

/** Holds the codes of one read, as they are entered. */
interface DecodedCodes {
  readonly codes: readonly NumberedCode[];
  readonly codeBytes: number;
  readonly keyless: readonly NumberedCode[];
  readonly sessionIds: ReadonlyMap<SessionNumber, string>;
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
    const before = this.#tables.get(name);
    // Codes are in the order of their numbers, so those whose key has come back are read again with all others.
    if (before !== undefined && this.#hasKeyAgain(scope, model, before)) this.#tables.delete(name);
    for (;;) {
      const after = this.#tables.get(name)?.lastNumber ?? 0;
      const kept = await ask(() => this.#backend.codes(scope, model, after, codesAtOnce), null);
      const decoded = await this.#decoded(scope, model, kept);
      // Another search may have dropped the table during the wait, to read it anew from its first code.
      if ((this.#tables.get(name)?.lastNumber ?? 0) < after) continue;
      // Another search may have added the same codes.
      const known = this.#tables.get(name) ?? (kept.length === 0 ? null : newTable(decoded.codeBytes));
      if (known === null) return null;
      addCodes(known, decoded);
      this.#keep(name, known);
      if (kept.length < codesAtOnce) return known;
      await pause();
    }
  }

  /** Tries one code of each owner, another one at each search: a single one may be damaged. */
  #hasKeyAgain({ namespace, agentId }: VectorScope, model: string, known: KnownTable): boolean {
    const turn = known.searches++;
    return known.keyless.entries().some(([owner, codes]) => {
      const [tried, sessionId] = [codes[turn % codes.length], known.sessionIds.get(owner)];
      if (this.#coder === null || tried === undefined || sessionId === undefined) return false;
      return this.#coder.code(tried.code, { namespace, agentId, model, sessionId }) !== "no key";
    });
  }

  /** A lost code is entered as zeros, and goes when a search finds that its numbers are lost, too. */
  async #decoded(
    { namespace, agentId }: VectorScope,
    model: string,
    kept: readonly NumberedCode[],
  ): Promise<DecodedCodes> {
    const coder = this.#coder;
    if (coder === null || kept.length === 0)
      return { codes: kept, codeBytes: kept[0]?.code.length ?? 0, keyless: [], sessionIds: new Map() };
    const owners = [...new Set(kept.map(({ owner }) => owner))];
    const sessionIds = await ask(() => this.#backend.sessionIds({ namespace, agentId }, owners), null);
    const unknown = signsOf(new Float32Array(Number(model.slice(model.lastIndexOf("@") + 1))));
    const codes: NumberedCode[] = [];
    const keyless: NumberedCode[] = [];
    for (const row of kept) {
      const sessionId = sessionIds.get(row.owner);
      const code = sessionId === undefined ? "lost" : coder.code(row.code, { namespace, agentId, model, sessionId });
      if (code === "no key") keyless.push(row);
      else codes.push({ ...row, code: code === "lost" ? unknown : code });
    }
    return { codes, codeBytes: unknown.length, keyless, sessionIds };
  }

  #keep(name: string, known: KnownTable): void {
    this.#tables.delete(name);
    this.#tables.set(name, known);
    const [oldest] = this.#tables.keys();
    if (this.#tables.size > mostTables && oldest !== undefined) this.#tables.delete(oldest);
  }
}

function newTable(codeBytes: number): KnownTable {
  return {
    codes: new CodeTable(codeBytes),
    owners: [],
    ownerNumbers: new Map(),
    sessionIds: new Map(),
    keyless: new Map(),
    lastNumber: 0,
    searches: 0,
  };
}

/** Adds what another search has not added meanwhile. */
function addCodes(known: KnownTable, { codes, keyless, sessionIds }: DecodedCodes): void {
  const after = known.lastNumber;
  for (const [owner, sessionId] of sessionIds) known.sessionIds.set(owner, sessionId);
  for (const { number, owner, code } of codes)
    if (number > after) known.codes.add(number, ownerNumber(known, owner), code);
  for (const row of keyless) {
    if (row.number <= after) continue;
    const others = known.keyless.get(row.owner);
    if (others === undefined) known.keyless.set(row.owner, [row]);
    else others.push(row);
  }
  known.lastNumber = Math.max(after, codes.at(-1)?.number ?? 0, keyless.at(-1)?.number ?? 0);
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
