import {
  assertAgentId,
  assertKnownOptions,
  assertNamespace,
  type NearestQuery,
  optionKinds,
  type OptionTable,
  type PendingQuery,
  quote,
  refused,
  type TextVector,
  type VectorPut,
  type VectorScope,
} from "@throughline/core/internal";
import type { SessionRef } from "@throughline/core";
import { assertObjects, assertRef } from "./assert-arguments.ts";

const { filledText, integer, list, oneOf, required, signal, text } = optionKinds;
const seq = required(integer({ min: 0 }));
const vectorKind = required({
  expected: "a Float32Array that is not empty",
  accepts: (value) => value instanceof Float32Array && value.length > 0,
});
const putTable: OptionTable<VectorPut> = {
  model: required(filledText),
  mark: required(text),
  fromSeq: required(integer({ min: 1 })),
  toSeq: seq,
  resumeSeq: seq,
  vectors: required(list),
};
const vectorTable: OptionTable<TextVector> = { firstSeq: seq, lastSeq: seq, part: seq, vector: vectorKind };
const nearestTable: OptionTable<NearestQuery> = {
  namespace: required(text),
  agentId: required(text),
  model: required(filledText),
  vector: vectorKind,
  key: text,
  state: oneOf(["active", "archived", "any"]),
  limit: integer({ min: 1, max: 200 }),
  signal,
};
const pendingTable: OptionTable<PendingQuery> = {
  model: required(filledText),
  limit: integer({ min: 1, max: 1000 }),
  signal,
};
const forgetTable: OptionTable<{ readonly keep?: string | undefined }> = { keep: filledText };
const signalTable: OptionTable<{ readonly signal?: AbortSignal | undefined }> = { signal };

/** Checks the arguments of `VectorsFacet.nearest`. @throws {ThroughlineError} INPUT_INVALID */
export function assertNearestQuery(query: NearestQuery): void {
  assertKnownOptions<NearestQuery>("nearest", query, nearestTable);
  assertScope(query);
  assertVector("nearest", query.model, query.vector);
}

/** Checks the arguments of `VectorsFacet.forget`. @throws {ThroughlineError} INPUT_INVALID */
export function assertForgetOptions(scope: VectorScope, options: { readonly keep?: string | undefined }): void {
  assertKnownOptions<{ readonly keep?: string | undefined }>("forget", options, forgetTable);
  assertScope(scope);
}

/** Checks the arguments of `VectorsFacet.pending`. @throws {ThroughlineError} INPUT_INVALID */
export function assertPendingQuery(scope: VectorScope, query: PendingQuery): void {
  assertKnownOptions<PendingQuery>("pending", query, pendingTable);
  assertScope(scope);
}

function assertScope(scope: VectorScope): void {
  assertObjects({ "the scope of vectors": scope });
  assertNamespace(scope.namespace);
  assertAgentId(scope.agentId);
}

/** Checks the arguments of `VectorsFacet.put`. @throws {ThroughlineError} INPUT_INVALID */
export function assertVectorPut(
  ref: SessionRef,
  put: VectorPut,
  options: { readonly signal?: AbortSignal | undefined },
): void {
  assertKnownOptions<{ readonly signal?: AbortSignal | undefined }>("put", options, signalTable);
  assertRef(ref);
  assertKnownOptions<VectorPut>("put", put, putTable, "put");
  for (const one of put.vectors) {
    assertKnownOptions<TextVector>("put", one, vectorTable, "vectors");
    assertVector("put", put.model, one.vector);
    if (one.firstSeq < put.fromSeq || one.lastSeq > put.toSeq || one.firstSeq > one.lastSeq)
      throw refused("INPUT_INVALID", "put(): a vector lies outside of the range that is put.", {
        fromSeq: put.fromSeq,
        toSeq: put.toSeq,
        firstSeq: one.firstSeq,
        lastSeq: one.lastSeq,
      });
  }
}

/** The id of a model states how long its vectors are, so no vector has to be read to compare them. */
function assertVector(call: string, model: string, vector: Float32Array): void {
  if (!model.endsWith(`@${vector.length}`))
    throw refused(
      "INPUT_INVALID",
      `${call}(): the vector has ${vector.length} numbers, which ${quote(model)} does not have.`,
      {
        model,
        length: vector.length,
      },
    );
  let squares = 0;
  for (const value of vector) squares += value * value;
  if (!Number.isFinite(squares) || squares === 0)
    throw refused("INPUT_INVALID", `${call}(): a vector has finite numbers, and one of them is not 0.`);
}
