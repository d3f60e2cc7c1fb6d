import type { SharedRecords } from "@throughline/core/internal";
import type * as core from "@throughline/core";
import { assertFence, assertRef, checkPartial, forkBound } from "@throughline/store-kit/internal";
import { assertSearchQuery, refused } from "@throughline/core/internal";
import { sessionRequest, type Connection } from "./connection.ts";
import { assertMayExist, boundMs, isAddressable, refOf, stateOf } from "./wire.ts";
import type { WireRef, WireSession } from "./wire.ts";

export function createSearchFacet(connection: Connection, begin: (signal?: AbortSignal) => void): core.SearchFacet {
  return {
    async *search(query) {
      assertSearchQuery(query);
      begin(query.signal);
      const { signal, namespace = "", text, agentId, key, sinceMs, untilMs, ...filters } = query;
      const times = { sinceMs: boundMs(sinceMs), untilMs: boundMs(untilMs) };
      const asked = { ...filters, ...times, q: text, agent: agentId, session: key };
      const request = { method: "POST", path: "/search", namespace, body: asked } as const;
      type WireHits = { readonly items: readonly (Omit<core.SearchHit, "ref"> & WireRef)[] };
      for (const hit of (await connection.read<WireHits>(request, signal)).items) {
        const { sessionId, seq, id, role, tsMs, score, snippet, highlights } = hit;
        yield { ref: refOf(namespace, hit), sessionId, seq, id, role, tsMs, score, snippet, highlights };
      }
    },
    async lag() {
      begin();
      return (await connection.read<{ readonly records: number }>({ path: "/search/lag" })).records;
    },
  };
}

export function createForkFacet(
  connection: Connection,
  begin: () => void,
  write: <Result>(work: () => Promise<Result>) => Promise<Result>,
  announce: (event: core.SessionEvent) => void,
): core.ForkFacet {
  return {
    fork: (ref, target, options) =>
      write(async () => {
        const atSeq = forkBound(ref, target, options);
        assertMayExist(ref);
        const { sessionId } = options;
        const body = { key: target.key, sessionId, ...(atSeq === Infinity ? {} : { atSeq }) };
        const request = sessionRequest(ref, "/fork", { method: "POST", body, query: { entry: true } });
        const answer = await connection.write<WireSession>(request);
        // Status 200 means that this fork existed already. That is a success only when the answer to an earlier attempt
        // was lost.
        if (answer.status === 200 && !answer.isRepeat)
          throw refused("SESSION_EXISTS", `The session id "${sessionId}" is in use.`, { id: sessionId });
        announce({ name: "session-created", ref: target, sessionId });
        return stateOf(answer.body);
      }),
    async sharers(ref, seqs) {
      begin();
      assertMayExist(ref);
      const request = sessionRequest(ref, "/sharers", { method: "POST", body: { seqs } });
      type WireSharers = { readonly items: readonly (Omit<SharedRecords, "ref"> & WireRef)[] };
      return (await connection.read<WireSharers>(request)).items.map((sharer) => {
        return { ref: refOf(ref.namespace, sharer), sessionId: sharer.sessionId, seqs: sharer.seqs };
      });
    },
  };
}

export function createPartialsFacet(
  connection: Connection,
  { limits }: Pick<core.StoreCapabilities, "limits">,
  write: <Result>(work: () => Promise<Result>) => Promise<Result>,
): core.PartialsFacet {
  return {
    write: (ref, given) =>
      write(async () => {
        const { partial } = checkPartial(given, limits);
        assertMayExist(ref);
        await connection.write(sessionRequest(ref, "/partial", { method: "PUT", body: partial }));
      }),
    read: (ref) =>
      write(async () => {
        assertMayExist(ref);
        type WirePartial = { readonly partial: core.PartialReply | null };
        return (await connection.read<WirePartial>(sessionRequest(ref, "/partial"))).partial;
      }),
    remove: (ref, fence) =>
      write(async () => {
        assertFence(fence);
        assertRef(ref);
        if (!isAddressable(ref)) return;
        await connection.write(sessionRequest(ref, "/partial", { method: "DELETE", query: { fence } }));
      }),
  };
}
