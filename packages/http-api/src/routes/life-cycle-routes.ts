import type { SessionRef, SessionState, SessionStore } from "@throughline/core";
import { endNow, forkSession, KeyedQueues, loadExisting, refused, sessionNotFound } from "@throughline/core/internal";
import { endSession, hasErrorCode } from "@throughline/core";
import { z } from "zod";
import { json } from "../http/answer.ts";
import { route, type RouteDefinition } from "../http/route.ts";
import { entryFlag, sessionQuery, sessionSchema } from "../schemas/session.ts";
import { listOf, queryFlag, queryInteger, seq } from "../schemas/values.ts";
import type { AuditEvent } from "../security/audit-log.ts";
import type { View } from "../security/view.ts";
import { findSame } from "./one-session.ts";
import { writtenSessionJson } from "./session-json.ts";

const named = z
  .string()
  .exactOptional()
  .describe("the id of the session that is meant: a repeat finds it where it went");
const withEntry = z.strictObject({ ...sessionQuery, ...entryFlag });

const spooledCalls = z
  .int()
  .min(0)
  .describe("calls of the gateway that wait for the store in files, and may hold the text still");

/** Serializes forks by key, so that a repeated request waits for the first one instead of failing. */
const forks = new KeyedQueues();

export const lifeCycleRoutes: readonly RouteDefinition[] = [
  route({
    id: "removeSession",
    method: "DELETE",
    path: "/sessions/{session}",
    summary: "Archives a session, or deletes it for good.",
    description:
      "The main session of an agent is refused, and so is a session with a running turn, for which `waitMs` waits. A program that takes these decisions itself sends `force`.",
    scope: "delete",
    query: z.strictObject({
      ...sessionQuery,
      ...entryFlag,
      purge: queryFlag().exactOptional().describe("deletes the session and every copy of its content"),
      waitMs: queryInteger(0, 60_000).exactOptional().describe("how long to wait for the end of a running turn"),
      force: queryFlag().exactOptional().describe("also the main session, and one with a running turn"),
      session: named,
    }),
    answers: {
      200: {
        description: "The archived session, or that it was removed.",
        schema: z.union([sessionSchema, z.looseObject({ kind: z.literal("removed"), key: z.string(), spooledCalls })]),
      },
    },
    errors: ["SESSION_NOT_FOUND", "SESSION_PROTECTED", "SESSION_BUSY"],
    handle: async ({ context, ref, view, query, signal, id }) => {
      const at = ref();
      const store = view.store(at.agentId);
      const { session, purge = false, entry, waitMs = 0, force = false } = query;
      if (purge) await context.audit.write({ ...auditOf(at, view, id), action: "purge", details: { key: at.key } });
      const state = session === undefined ? await loadExisting(store, at) : await same(store, at, session);
      // When a purge finds no session, an earlier request has purged it. The repeat succeeds.
      if (state === null && !purge) throw sessionNotFound(at);
      const waiting = { clock: context.clock, timeoutMs: waitMs, signal };
      const end = (it: SessionState): Promise<SessionState | null> =>
        force ? endNow(store, it, { purge, clock: context.clock }) : endSession(store, it.ref, { ...waiting, purge });
      const archived = state === null ? null : await end(state);
      if (archived !== null) return json(200, writtenSessionJson(view, archived, entry));
      const spooledCalls = await context.onErased(at, true);
      return json(200, { kind: "removed", ...at, sessionId: state?.sessionId ?? session ?? null, spooledCalls });
    },
  }),
  route({
    id: "renameSession",
    method: "POST",
    path: "/sessions/{session}/rename",
    summary: "Gives a session another key; its id and records stay.",
    scope: "write",
    query: withEntry,
    body: { schema: z.strictObject({ key: z.string(), sessionId: named }) },
    answers: { 200: { description: "The session under its new key.", schema: sessionSchema } },
    errors: ["SESSION_NOT_FOUND", "SESSION_EXISTS", "SESSION_ARCHIVED", "KEY_INVALID", "KEY_AGENT_MISMATCH"],
    handle: async ({ ref, view, query, body }) => {
      const at = ref();
      const store = view.store(at.agentId);
      const { key, sessionId } = body;
      const done = sessionId === undefined ? null : await store.load(targetOf(at, key));
      if (done !== null && done.sessionId === sessionId) return json(200, writtenSessionJson(view, done, query.entry));
      await assertSame(store, at, sessionId);
      return json(200, writtenSessionJson(view, await store.move(at, { kind: "rename", key }), query.entry));
    },
  }),
  route({
    id: "restoreSession",
    method: "POST",
    path: "/sessions/{session}/restore",
    summary: "Puts an archived session back under its key. `archive` names it.",
    scope: "write",
    query: withEntry,
    body: { schema: z.strictObject({ sessionId: named }), isOptional: true },
    answers: { 200: { description: "The session.", schema: sessionSchema } },
    errors: ["SESSION_NOT_FOUND", "SESSION_EXISTS"],
    handle: async ({ ref, view, query, body }) => {
      const at = ref();
      const store = view.store(at.agentId);
      const sessionId = body?.sessionId;
      if (sessionId !== undefined && at.archiveId !== undefined && (await store.load(at)) === null) {
        const { archiveId: _archived, ...current } = at;
        const done = await store.load(current);
        if (done?.sessionId === sessionId) return json(200, writtenSessionJson(view, done, query.entry));
      }
      return json(200, writtenSessionJson(view, await store.move(at, { kind: "restore" }), query.entry));
    },
  }),
  route({
    id: "forkSession",
    method: "POST",
    path: "/sessions/{session}/fork",
    summary: "Makes a session that begins with the records of another.",
    description: "A fork of this session with this id is answered with 200, so that the request may be repeated.",
    scope: "write",
    query: withEntry,
    body: {
      schema: z.strictObject({
        key: z.string().describe("of the fork"),
        sessionId: z.string().describe("of the fork, chosen by the caller"),
        atSeq: seq.exactOptional().describe("the last record that both have; all without it"),
      }),
    },
    answers: {
      200: { description: "The fork was there already.", schema: sessionSchema },
      201: { description: "The fork.", schema: sessionSchema },
    },
    errors: [
      "SESSION_NOT_FOUND",
      "SESSION_EXISTS",
      "SESSION_ID_INVALID",
      "KEY_INVALID",
      "KEY_AGENT_MISMATCH",
      "ID_CASE_COLLISION",
    ],
    handle: async ({ ref, view, query, body }) => {
      const at = ref();
      const store = view.store(at.agentId);
      const { key, sessionId, atSeq } = body;
      const target = targetOf(at, key);
      const found = async (): Promise<SessionState | null> => {
        const done = await store.load(target);
        return done?.sessionId === sessionId && isForkOf(done, await loadExisting(store, at), atSeq) ? done : null;
      };
      const { namespace, agentId } = at;
      return forks.run(JSON.stringify([namespace, agentId, key]), async () => {
        const done = await found();
        if (done !== null) return json(200, writtenSessionJson(view, done, query.entry));
        const options = { sessionId, ...(atSeq === undefined ? {} : { atSeq }) };
        try {
          // A store without shared records cannot fork, so core copies the records.
          const state =
            store.fork === undefined
              ? await forkSession(store, at, target, options)
              : await store.fork.fork(at, target, options);
          return json(201, writtenSessionJson(view, state, query.entry));
        } catch (error) {
          if (!hasErrorCode(error, "SESSION_EXISTS", "REVISION_CONFLICT")) throw error;
          // Another node may have handled the same request at the same time, so its fork counts as the result.
          const other = await found();
          if (other === null)
            throw refused("SESSION_EXISTS", "A session holds the key of the fork.", { key, sessionId }, error);
          return json(200, writtenSessionJson(view, other, query.entry));
        }
      });
    },
  }),
  route({
    id: "findSharers",
    method: "POST",
    path: "/sessions/{session}/sharers",
    summary: "The other sessions that a redaction of these records reaches.",
    scope: "read",
    query: z.strictObject(sessionQuery),
    body: { schema: z.strictObject({ seqs: z.array(seq).max(100_000) }) },
    answers: {
      200: {
        description: "Sessions, each with those of the records that it has in common.",
        schema: listOf(z.looseObject({ kind: z.literal("sharer"), key: z.string(), seqs: z.array(seq) })),
      },
    },
    errors: ["SESSION_NOT_FOUND", "CAPABILITY_UNSUPPORTED"],
    handle: async ({ ref, view, body }) => {
      const at = ref();
      const { fork } = view.store(at.agentId);
      if (fork?.sharers === undefined) throw refused("CAPABILITY_UNSUPPORTED", "The store shares no records.");
      const items = (await fork.sharers(at, body.seqs)).map(({ ref: { agentId, key, archiveId }, sessionId, seqs }) =>
        JSON.stringify({ kind: "sharer", agentId, key, archiveId: archiveId ?? null, sessionId, seqs }),
      );
      return { kind: "list", items, nextCursor: null };
    },
  }),
  route({
    id: "redactRecords",
    method: "POST",
    path: "/sessions/{session}/redact",
    summary: "Replaces the content of records by tombstones, everywhere it is kept. It cannot be undone.",
    scope: "delete",
    query: z.strictObject(sessionQuery),
    body: {
      schema: z.strictObject({
        ids: z.array(z.string()).max(100_000),
        reason: z.string().describe("kept in the tombstone"),
        entryFields: z
          .array(z.string())
          .max(1000)
          .exactOptional()
          .describe("fields of the entry that repeat the records"),
        texts: z
          .array(z.string().min(1))
          .max(100_000)
          .exactOptional()
          .describe("replaced inside of the records, which keep the rest. Without it a tombstone replaces each record"),
      }),
    },
    answers: {
      200: {
        description: "The seqs of the records.",
        schema: z.looseObject({ kind: z.literal("redaction"), seqs: z.array(seq), spooledCalls }),
      },
    },
    errors: ["SESSION_NOT_FOUND", "RECORD_NOT_FOUND"],
    handle: async ({ context, ref, view, body, id }) => {
      const at = ref();
      const { ids, ...options } = body;
      await context.audit.write({ ...auditOf(at, view, id), action: "redact", details: { key: at.key, ids } });
      const { seqs } = await view.store(at.agentId).redact(at, ids, options);
      context.usage.forget(at);
      return json(200, { kind: "redaction", seqs, spooledCalls: await context.onErased(at, false) });
    },
  }),
];

function auditOf(
  { namespace, agentId }: SessionRef,
  { token }: View,
  requestId: string,
): Omit<AuditEvent, "action" | "details"> {
  return { by: token.id, namespace, agentId, requestId };
}

function targetOf({ namespace, agentId }: SessionRef, key: string): SessionRef {
  return { namespace, agentId, key };
}

async function same(store: SessionStore, ref: SessionRef, sessionId: string): Promise<SessionState | null> {
  try {
    return await findSame(store, ref, sessionId);
  } catch (error) {
    if (hasErrorCode(error, "SESSION_NOT_FOUND")) return null;
    throw error;
  }
}

/** The key may belong to another session by now, which must not be changed. */
async function assertSame(store: SessionStore, ref: SessionRef, sessionId: string | undefined): Promise<void> {
  if (sessionId === undefined) return;
  if ((await loadExisting(store, ref)).sessionId !== sessionId) throw sessionNotFound(ref);
}

/** An interrupted fork is incomplete, so it does not count as done. */
function isForkOf({ entry }: SessionState, origin: SessionState, atSeq: number | undefined): boolean {
  const from = entry["forkedFrom"] as { readonly sessionId?: unknown; readonly atSeq?: unknown } | undefined;
  const isSamePlace = atSeq === undefined || from?.atSeq === Math.min(atSeq, origin.head.lastSeq);
  return from?.sessionId === origin.sessionId && isSamePlace && entry["forkIncomplete"] !== true;
}
