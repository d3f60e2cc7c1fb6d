import { hasErrorCode, type SessionState } from "@throughline/core";
import { loadExisting, patchEntry, refused, sessionNotFound, systemRandom } from "@throughline/core/internal";
import { z } from "zod";
import { json } from "../http/answer.ts";
import { route, type RouteDefinition } from "../http/route.ts";
import { entryFlag, mostOfEntry, sessionQuery, sessionSchema } from "../schemas/session.ts";
import { atMs, openObject } from "../schemas/values.ts";
import { entryRoutes } from "./entry-routes.ts";
import { sessionJson, sessionTag, sourceAtMs, writtenSessionJson } from "./session-json.ts";
import { sessionListRoute } from "./session-list-route.ts";

export const sessionRoutes: readonly RouteDefinition[] = [
  sessionListRoute,
  route({
    id: "createSession",
    method: "PUT",
    path: "/sessions/{session}",
    summary: "Makes a session, unless it is there already.",
    description:
      "A session with this key and id is answered with 200 and stays as it is, so that the request may be repeated. Without an id, any session with the key is.",
    scope: "write",
    query: z.strictObject({ agent: sessionQuery.agent, ...entryFlag }),
    body: {
      isOptional: true,
      most: mostOfEntry,
      schema: z.strictObject({
        sessionId: z
          .string()
          .exactOptional()
          .describe("1 to 128 letters, digits, `.`, `_` and `-`; one is made without it"),
        entry: openObject.exactOptional().describe("fields of the entry"),
        createdAtMs: atMs.exactOptional().describe("for a session that comes from elsewhere"),
      }),
    },
    answers: {
      200: { description: "It was there already.", schema: sessionSchema },
      201: { description: "It was made.", schema: sessionSchema },
    },
    errors: ["SESSION_EXISTS", "SESSION_ID_INVALID", "KEY_INVALID", "ID_CASE_COLLISION", "AGENT_ID_INVALID"],
    handle: async (request) => {
      const { query, view, body } = request;
      const { sessionId, entry = {}, createdAtMs } = body ?? {};
      const ref = request.newRef();
      const store = view.store(ref.agentId);
      const existing = await store.load(ref);
      if (existing !== null) return json(200, writtenSessionJson(view, same(existing, sessionId), query.entry));
      try {
        const id = sessionId ?? systemRandom.uuid();
        const given = patchEntry({ sessionId: id }, { ...entry, sessionId: id });
        const begins = createdAtMs === undefined ? {} : { createdAtMs };
        return json(
          201,
          writtenSessionJson(view, await store.save(ref, given, { ifRevision: null, ...begins }), query.entry),
        );
      } catch (error) {
        if (!hasErrorCode(error, "REVISION_CONFLICT")) throw error;
        return json(200, writtenSessionJson(view, same(await loadExisting(store, ref), sessionId), query.entry));
      }
    },
  }),
  route({
    id: "getSession",
    method: "GET",
    path: "/sessions/{session}",
    summary: "A session and where it stands.",
    scope: "read",
    query: z.strictObject({ ...sessionQuery, ...entryFlag }),
    headers: { "if-none-match": "the ETag of an earlier answer: 304 while nothing changed" },
    answers: {
      200: {
        description: "The session. Its ETag changes with the entry and with every record.",
        schema: sessionSchema,
      },
      304: { description: "Nothing changed since the answer with that ETag." },
    },
    errors: ["SESSION_NOT_FOUND"],
    handle: async ({ context, ref, view, query, header, signal }) => {
      const at = ref();
      const state = await view.store(at.agentId).load(at, { signal });
      if (state === null) throw sessionNotFound(at);
      const headers = { etag: sessionTag(state) };
      if (header("if-none-match") === headers.etag) return { kind: "empty", status: 304, headers };
      const found = { ...sessionJson(state, query.entry), sourceAtMs: await sourceAtMs(state, context.sourceFiles) };
      return json(200, found, headers);
    },
  }),
  ...entryRoutes,
];

/** @throws {ThroughlineError} SESSION_EXISTS when the key has another session than the named one */
function same(state: SessionState, sessionId: string | undefined): SessionState {
  if (sessionId === undefined || state.sessionId === sessionId) return state;
  const { key } = state.ref;
  throw refused("SESSION_EXISTS", `Another session holds the key ${JSON.stringify(key)}.`, {
    key,
    sessionId: state.sessionId,
  });
}
