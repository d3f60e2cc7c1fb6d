import assert from "node:assert/strict";
import type { SessionRef, SessionStore, StoreCapabilities, VectorsFacet } from "@throughline/core";
import type { NearestHit, PendingRange, PendingVectors, VectorPut, VectorScope } from "@throughline/core/internal";
import { createSession, userDraft, type NewSession } from "./case-tools.ts";

export const requires = ({ vectors }: StoreCapabilities): boolean => vectors === true;

export function facetOf({ vectors }: SessionStore): VectorsFacet {
  assert.ok(vectors !== undefined, "a store that declares vectors has the facet");
  return vectors;
}

export const scope: VectorScope = { namespace: "", agentId: "main" };
const dimensions = 40;
export const model: string = `kit/one@${dimensions}`;
export const otherModel: string = `kit/two@${dimensions}`;

/** Returns a vector that points in one of 40 directions, and a little in all others. */
export function vectorOf(direction: number): Float32Array {
  return new Float32Array(dimensions).fill(-0.01).fill(1, direction, direction + 1);
}

/** Creates a session with some records, one exchange each. */
export async function withRecords(
  store: SessionStore,
  name: string,
  count: number,
  options: NewSession = {},
): Promise<SessionRef> {
  const ref = await createSession(store, name, options);
  await store.append(
    ref,
    Array.from({ length: count }, (_, index) => userDraft(`${name} says ${index + 1}`)),
  );
  return ref;
}

export async function pendingOf(
  store: SessionStore,
  given: { readonly at?: VectorScope; readonly of?: string; readonly limit?: number } = {},
): Promise<PendingVectors> {
  const { at = scope, of = model, limit } = given;
  return facetOf(store).pending(at, { model: of, ...(limit === undefined ? {} : { limit }) });
}

/** Returns the range of a session that has no vectors yet. */
export async function rangeOf(
  store: SessionStore,
  { key, namespace, agentId }: SessionRef,
  of: string = model,
): Promise<PendingRange> {
  const { ranges } = await pendingOf(store, { at: { namespace, agentId }, of });
  const found = ranges.find(({ ref }) => ref.key === key);
  assert.ok(found !== undefined, `records of ${key} are pending`);
  return found;
}

/** Puts one vector for each record of a range: the record with seq n points in direction n plus `turn`. */
export function putOf({ fromSeq, toSeq, mark }: PendingRange, turn: number = 0, of: string = model): VectorPut {
  const seqs = Array.from({ length: toSeq - fromSeq + 1 }, (_, index) => fromSeq + index);
  const vectors = seqs.map((seq) => ({ firstSeq: seq, lastSeq: seq, part: 0, vector: vectorOf(seq + turn) }));
  return { model: of, mark, fromSeq, toSeq, resumeSeq: toSeq, vectors };
}

/** Gives the records of a session vectors. */
export async function fill(store: SessionStore, ref: SessionRef, turn: number = 0, of: string = model): Promise<void> {
  assert.equal(await facetOf(store).put(ref, putOf(await rangeOf(store, ref, of), turn, of)), true);
}

export async function nearestTo(
  store: SessionStore,
  direction: number,
  given: {
    readonly at?: VectorScope;
    readonly of?: string;
    readonly limit?: number;
    readonly key?: string;
    readonly state?: "active" | "archived" | "any";
  } = {},
): Promise<readonly NearestHit[]> {
  const { at = scope, of = model, ...rest } = given;
  return facetOf(store).nearest({ ...at, model: of, vector: vectorOf(direction), ...rest });
}

/** Returns the hits that point in the direction of the question, as `key#seq`. */
export async function hitsAt(
  store: SessionStore,
  direction: number,
  given: Parameters<typeof nearestTo>[2] = {},
): Promise<readonly string[]> {
  const hits = await nearestTo(store, direction, given);
  return hits.filter(({ score }) => score > 0.9).map(({ ref, firstSeq }) => `${ref.key}#${firstSeq}`);
}
