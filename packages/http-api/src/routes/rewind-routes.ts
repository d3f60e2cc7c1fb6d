import { appendOnce } from "@throughline/core";
import {
  findRecord,
  keptOnReset,
  loadExisting,
  noteArchiving,
  refused,
  resetSession,
  runInSlices,
  stillAnswering,
  systemRandom,
} from "@throughline/core/internal";
import { readRecords } from "@throughline/core/internal/node";
import { rewindSteps } from "@throughline/history/internal";
import { z } from "zod";
import { json } from "../http/answer.ts";
import { route, type RouteDefinition } from "../http/route.ts";
import { entryFlag, sessionQuery, sessionSchema } from "../schemas/session.ts";
import { sessionJson } from "./session-json.ts";

const withEntry = z.strictObject({ ...sessionQuery, ...entryFlag });

export const rewindRoutes: readonly RouteDefinition[] = [
  route({
    id: "resetSession",
    method: "POST",
    path: "/sessions/{session}/reset",
    summary: "Begins an empty session under the key, and archives the one that is there.",
    description: "Where the session with this id has the key already, it is answered as it is.",
    scope: "write",
    query: withEntry,
    body: {
      schema: z.strictObject({
        sessionId: z.string().describe("of the new session, chosen by the caller"),
        bare: z.boolean().exactOptional().describe("without the settings that a session keeps over a reset"),
      }),
    },
    answers: {
      200: { description: "It was reset already.", schema: sessionSchema },
      201: { description: "The new session.", schema: sessionSchema },
    },
    errors: ["SESSION_NOT_FOUND", "SESSION_ARCHIVED", "SESSION_BUSY", "SESSION_ID_INVALID", "ID_CASE_COLLISION"],
    handle: async ({ context, ref, view, query, body }) => {
      const at = ref();
      const store = view.store(at.agentId);
      if (at.archiveId !== undefined)
        throw refused("SESSION_ARCHIVED", "An archived session is not reset.", { archiveId: at.archiveId });
      const old = await loadExisting(store, at);
      const { sessionId, bare = false } = body;
      if (old.sessionId === sessionId) return json(200, sessionJson(old, query.entry));
      const { turn } = old.head;
      if (turn !== null && turn.leaseUntilMs > context.clock.nowMs())
        throw refused("SESSION_BUSY", stillAnswering(turn.owner), { turn });
      await noteArchiving(store, at, context.clock);
      // `resetSession` asks the random source for the id, so this source returns the id that the caller chose.
      const random = { ...systemRandom, uuid: () => sessionId };
      const state = await resetSession(store, at, { random, ...(bare ? {} : { keep: keptOnReset }) });
      return json(201, sessionJson(state, query.entry));
    },
  }),
  route({
    id: "rewindSession",
    method: "POST",
    path: "/sessions/{session}/rewind",
    summary: "Moves the head to an earlier record, or to one of another branch. What is left behind stays readable.",
    scope: "write",
    query: withEntry,
    body: {
      schema: z.strictObject({ to: z.string().nullable().describe("the id of a record; null: before the first") }),
    },
    answers: { 200: { description: "The session.", schema: sessionSchema } },
    errors: ["SESSION_NOT_FOUND", "SESSION_ARCHIVED", "RECORD_NOT_FOUND", "SESSION_BUSY", "APPEND_CONFLICT"],
    handle: async ({ ref, view, query, body, signal }) => {
      const at = ref();
      const store = view.store(at.agentId);
      const { head } = await loadExisting(store, at);
      const target = body.to === null ? null : (await findRecord(store, at, body.to, signal)).id;
      if (head.headId !== target) {
        const records = await readRecords(store, at, signal);
        const { drafts, options } = await runInSlices(rewindSteps(records, head.headId, target));
        await appendOnce(store, at, drafts, {
          ...options,
          signal,
          idempotencyKey: systemRandom.uuid(),
          isNewKey: true,
        });
      }
      return json(200, sessionJson(await loadExisting(store, at), query.entry));
    },
  }),
];
