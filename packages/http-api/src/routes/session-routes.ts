import { hasErrorCode, type ListQuery, type SessionPage, type SessionState } from "@throughline/core";
import { loadExisting, patchEntry, refused, sessionNotFound, systemRandom } from "@throughline/core/internal";
import { z } from "zod";
import { json } from "../http/answer.ts";
import { present } from "../http/present.ts";
import { route, type RouteDefinition } from "../http/route.ts";
import { entryFlag, mostOfEntry, sessionQuery, sessionSchema } from "../schemas/session.ts";
import { atMs, listOf, openObject, queryInteger } from "../schemas/values.ts";
import { entryRoutes } from "./entry-routes.ts";
import { sessionJson, sessionTag } from "./session-json.ts";

const findingSchema = z.looseObject({ code: z.string(), severity: z.string(), message: z.string() });
const mebibyte = 1024 * 1024;
/** Sessions are read in steps of this size, because entries of many megabytes must not all be in memory. */
const listStep = 100;
const answerBytes = 2 * mebibyte;

const listQuery = z.strictObject({
  agent: z.string().exactOptional().describe("only sessions of this agent"),
  state: z
    .enum(["active", "archived", "any"])
    .exactOptional()
    .describe("active without it; any without it when a source is named"),
  importedFormat: z
    .string()
    .exactOptional()
    .describe("only sessions that were imported from this format, such as `claude-code`; with `importedId`"),
  importedId: z
    .string()
    .exactOptional()
    .describe("only sessions that had this id in their source, in any case; with `importedFormat`"),
  prefix: z.string().exactOptional().describe("only keys that begin with it"),
  sinceMs: queryInteger(0).exactOptional().describe("updated at or after"),
  untilMs: queryInteger(0).exactOptional().describe("updated before"),
  sort: z.enum(["updated", "key"]).exactOptional().describe("newest first, or by agent and key; updated without it"),
  limit: queryInteger(1).exactOptional().describe("50 without it, at most 1,000; a page ends at 2 MiB as well"),
  cursor: z.string().exactOptional().describe("from the page before, with the same query"),
  ...entryFlag,
});

export const sessionRoutes: readonly RouteDefinition[] = [
  route({
    id: "listSessions",
    method: "GET",
    path: "/sessions",
    summary: "Lists sessions, page by page.",
    scope: "read",
    query: listQuery,
    answers: {
      200: {
        description: "A page of sessions.",
        schema: listOf(sessionSchema, {
          findings: z.array(findingSchema),
          purgedAtMs: atMs
            .nullable()
            .optional()
            .describe(
              "when a session of the named source was purged last, or null; present when a source is named and no prefix is",
            ),
        }),
      },
    },
    errors: ["CURSOR_INVALID", "CODEC_FAILED"],
    handle: async ({ context, view, query, signal }) => {
      const { cursor, entry = false, limit = 50, agent: given, prefix, importedFormat, importedId, ...filters } = query;
      const importedFrom = sourceOf(importedFormat, importedId);
      const agent = given ?? view.onlyAgent ?? undefined;
      const bound = JSON.stringify([view.identity, agent, prefix, filters, importedFrom]);
      const { namespace } = view;
      const asked = present({ ...filters, namespace, agentId: agent, keyPrefix: prefix, importedFrom, signal });
      const items: string[] = [];
      let bytes = 0;
      let next = cursor === undefined ? null : context.cursors.open(cursor, bound);
      let left = Math.min(limit, 1000);
      let purged: Pick<SessionPage, "purgedAtMs"> = {};
      do {
        const page = await view
          .store(agent)
          .list({ ...asked, limit: Math.min(left, listStep), ...(next === null ? {} : { cursor: next }) });
        for (const state of page.sessions) {
          const text = JSON.stringify(sessionJson(state, entry));
          items.push(text);
          bytes += text.length;
        }
        left -= page.sessions.length;
        next = page.nextCursor;
        purged = present({ purgedAtMs: page.purgedAtMs });
      } while (next !== null && left > 0 && bytes < answerBytes);
      const nextCursor = next === null ? null : context.cursors.seal(next, bound);
      return {
        kind: "list",
        items,
        nextCursor,
        members: { findings: context.findingsOf(namespace, agent), ...purged },
      };
    },
  }),
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
      if (existing !== null) return json(200, sessionJson(same(existing, sessionId), query.entry));
      try {
        const id = sessionId ?? systemRandom.uuid();
        const given = patchEntry({ sessionId: id }, { ...entry, sessionId: id });
        const begins = createdAtMs === undefined ? {} : { createdAtMs };
        return json(201, sessionJson(await store.save(ref, given, { ifRevision: null, ...begins }), query.entry));
      } catch (error) {
        if (!hasErrorCode(error, "REVISION_CONFLICT")) throw error;
        return json(200, sessionJson(same(await loadExisting(store, ref), sessionId), query.entry));
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
    handle: async ({ ref, view, query, header, signal }) => {
      const at = ref();
      const state = await view.store(at.agentId).load(at, { signal });
      if (state === null) throw sessionNotFound(at);
      const headers = { etag: sessionTag(state) };
      if (header("if-none-match") === headers.etag) return { kind: "empty", status: 304, headers };
      return json(200, sessionJson(state, query.entry), headers);
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

/** @throws {ThroughlineError} INPUT_INVALID for a half of a source */
function sourceOf(format: string | undefined, sourceId: string | undefined): ListQuery["importedFrom"] {
  if (format !== undefined && sourceId !== undefined) return { format, sourceId };
  if (format === undefined && sourceId === undefined) return undefined;
  const [given, missing] = format === undefined ? ["importedId", "importedFormat"] : ["importedFormat", "importedId"];
  const message = `The query has "${given}" without "${missing}"; a source needs both.`;
  throw refused("INPUT_INVALID", message, { path: missing });
}
