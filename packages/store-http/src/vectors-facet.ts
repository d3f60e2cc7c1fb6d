import type { SessionRef, VectorsFacet } from "@throughline/core";
import type { NearestHit, PendingRange, PendingVectors } from "@throughline/core/internal";
import {
  assertForgetOptions,
  assertNearestQuery,
  assertPendingQuery,
  assertVectorPut,
  type HandleLife,
} from "@throughline/store-kit/internal";
import { sessionRequest, type Connection } from "./connection.ts";
import { isAddressable, refOf, type WireRef } from "./wire.ts";

type WireRange = Omit<PendingRange, "ref"> & WireRef;
type WireNear = Omit<NearestHit, "ref"> & WireRef;

/** Passes vectors on to the server, as the bytes of their numbers in base64. */
export function createVectorsFacet(connection: Connection, life: HandleLife): VectorsFacet {
  return {
    async put(ref, put, options = {}) {
      assertVectorPut(ref, put, options);
      life.begin(options.signal);
      if (!isAddressable(ref)) return false;
      return life.track(() => sendPut(connection, ref, put, options.signal));
    },
    async nearest(query) {
      assertNearestQuery(query);
      const { namespace, agentId, key, signal, model, state, limit } = query;
      life.begin(signal);
      const body = { agent: agentId, session: key, model, state, limit, vector: base64Of(query.vector) };
      const request = { method: "POST", path: "/vectors/nearest", namespace, body } as const;
      const { items } = await life.track(() =>
        connection.read<{ readonly items: readonly WireNear[] }>(request, signal),
      );
      return items.map(({ sessionId, firstSeq, lastSeq, part, score, ...at }) => {
        return { ref: refOf(namespace, at), sessionId, firstSeq, lastSeq, part, score };
      });
    },
    async forget(scope, options = {}) {
      assertForgetOptions(scope, options);
      life.begin();
      const { namespace, agentId } = scope;
      const query = { agent: agentId, keep: options.keep };
      const request = { method: "DELETE", path: "/vectors", namespace, query } as const;
      const { body } = await life.track(() => connection.write<{ readonly vectors: number }>(request));
      return body.vectors;
    },
    async pending(scope, query) {
      assertPendingQuery(scope, query);
      const { namespace, agentId } = scope;
      const { model, limit, signal } = query;
      life.begin(signal);
      type WirePending = Omit<PendingVectors, "ranges"> & { readonly ranges: readonly WireRange[] };
      const request = { path: "/vectors/pending", namespace, query: { agent: agentId, model, limit } };
      const { ranges, records, hasOthers } = await life.track(() => connection.read<WirePending>(request, signal));
      return { ranges: ranges.map((range) => rangeOf(namespace, range)), records, hasOthers };
    },
  };
}

function rangeOf(namespace: string, range: WireRange): PendingRange {
  const { sessionId, fromSeq, toSeq, coveredSeq, mark } = range;
  return { ref: refOf(namespace, range), sessionId, fromSeq, toSeq, coveredSeq, mark };
}

/** A repeat puts the same vectors again, so a lost answer costs nothing. */
async function sendPut(
  connection: Connection,
  ref: SessionRef,
  { model, mark, fromSeq, toSeq, resumeSeq, vectors }: Parameters<VectorsFacet["put"]>[1],
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const items = vectors.map(({ firstSeq, lastSeq, part, vector }) => {
    return { firstSeq, lastSeq, part, vector: base64Of(vector) };
  });
  const body = { model, mark, fromSeq, toSeq, resumeSeq, vectors: items };
  const request = sessionRequest(ref, "/vectors", { method: "PUT", body });
  return (await connection.write<{ readonly isStored: boolean }>(request, { signal })).body.isStored;
}

/** Every processor that Node runs on keeps the low byte first, as the route expects. */
function base64Of(vector: Float32Array): string {
  return Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString("base64");
}
