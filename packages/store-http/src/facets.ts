import type * as core from "@throughline/core";
import {
  assertFence,
  assertRef,
  assertStoreOptions,
  forkBound,
  preparePartial,
  readSearchQuery,
  refused,
  sessionNotFound,
} from "@throughline/core/store";
import { sessionRequest, type Connection } from "./connection.ts";
import { isAddressable } from "./addressable.ts";
import { boundMs, stateOf, type WireSession } from "./wire.ts";

type WireHit = Omit<core.SearchHit, "ref"> & Pick<WireSession, "agentId" | "key" | "archiveId">;

export function createSearchFacet(connection: Connection, begin: (signal?: AbortSignal) => void): core.SearchFacet {
  return {
    async *search(query) {
      assertStoreOptions("search", query);
      begin(query.signal);
      readSearchQuery(query);
      const { signal, namespace = "", text, agentId, key, sinceMs, untilMs, ...filters } = query;
      const times = { sinceMs: boundMs(sinceMs), untilMs: boundMs(untilMs) };
      const asked = { ...filters, ...times, q: text, agent: agentId, session: key };
      const request = { method: "POST", path: "/search", namespace, body: asked } as const;
      const { body } = await connection.ask<{ readonly items: readonly WireHit[] }>(request, {
        isWrite: false,
        signal,
      });
      for (const { agentId: agent, key: at, archiveId, ...item } of body.items) {
        const { sessionId: id, seq, id: recordId, role, tsMs, score, snippet, highlights } = item;
        const ref = { namespace, agentId: agent, key: at, ...(archiveId === null ? {} : { archiveId }) };
        yield { ref, sessionId: id, seq, id: recordId, role, tsMs, score, snippet, highlights };
      }
    },
    async lag() {
      begin();
      const { body } = await connection.ask<{ readonly records: number }>({ path: "/search/lag" }, { isWrite: false });
      return body.records;
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
        if (!isAddressable(ref)) throw sessionNotFound(ref);
        const { sessionId } = options;
        const body = { key: target.key, sessionId, ...(atSeq === Infinity ? {} : { atSeq }) };
        const request = sessionRequest(ref, "/fork", { method: "POST", body, query: { entry: true } });
        const answer = await connection.ask<WireSession>(request, { isWrite: true });
        // 200: a fork of this origin with this id was there already. It is ours only when an answer was lost.
        if (answer.status === 200 && !answer.isRepeat)
          throw refused("SESSION_EXISTS", `The session id "${sessionId}" is in use.`, { id: sessionId });
        announce({ name: "session-created", ref: target, sessionId });
        return stateOf(answer.body);
      }),
    async sharers(ref, seqs) {
      begin();
      assertRef(ref);
      if (!isAddressable(ref)) throw sessionNotFound(ref);
      const request = sessionRequest(ref, "/sharers", { method: "POST", body: { seqs } });
      const { body } = await connection.ask<{
        readonly items: readonly (Omit<core.SharedRecords, "ref"> &
          Pick<WireSession, "agentId" | "key" | "archiveId">)[];
      }>(request, { isWrite: false });
      return body.items.map(({ agentId, key, archiveId, sessionId, seqs: shared }) => {
        const at = { namespace: ref.namespace, agentId, key, ...(archiveId === null ? {} : { archiveId }) };
        return { ref: at, sessionId, seqs: shared };
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
        const { partial } = preparePartial(given, limits);
        assertRef(ref);
        if (!isAddressable(ref)) throw sessionNotFound(ref);
        await connection.ask(sessionRequest(ref, "/partial", { method: "PUT", body: partial }), { isWrite: true });
      }),
    read: (ref) =>
      write(async () => {
        assertRef(ref);
        if (!isAddressable(ref)) throw sessionNotFound(ref);
        const request = sessionRequest(ref, "/partial");
        const { body } = await connection.ask<{ readonly partial: core.PartialReply | null }>(request, {
          isWrite: false,
        });
        return body.partial;
      }),
    remove: (ref, fence) =>
      write(async () => {
        assertFence(fence);
        assertRef(ref);
        if (!isAddressable(ref)) return;
        await connection.ask(sessionRequest(ref, "/partial", { method: "DELETE", query: { fence } }), {
          isWrite: true,
        });
      }),
  };
}
