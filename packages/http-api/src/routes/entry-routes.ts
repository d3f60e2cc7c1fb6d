import type { SessionState } from "@throughline/core";
import { patchEntry, refused, sessionNotFound, updateEntry } from "@throughline/core/internal";
import { z } from "zod";
import { json, type Answer } from "../http/answer.ts";
import { route, type RouteDefinition } from "../http/route.ts";
import type { View } from "../security/view.ts";
import { mostOfEntry, sessionQuery, sessionSchema } from "../schemas/session.ts";
import { openObject, queryInteger } from "../schemas/values.ts";
import { revisionTag, shownEntry, writtenSessionJson } from "./session-json.ts";

const entrySchema = z
  .looseObject({ kind: z.literal("entry"), sessionId: z.string(), revision: z.int().min(1), entry: openObject })
  .meta({ id: "entry" });

export const entryRoutes: readonly RouteDefinition[] = [
  route({
    id: "getEntry",
    method: "GET",
    path: "/sessions/{session}/entry",
    summary: "What is kept of a session beside its records.",
    scope: "read",
    query: z.strictObject(sessionQuery),
    answers: { 200: { description: "The entry. Its ETag is its revision.", schema: entrySchema } },
    errors: ["SESSION_NOT_FOUND"],
    handle: async ({ ref, view, signal }) => {
      const at = ref();
      const state = await view.store(at.agentId).load(at, { signal });
      if (state === null) throw sessionNotFound(at);
      return answerOf(view, state);
    },
  }),
  route({
    id: "replaceEntry",
    method: "PUT",
    path: "/sessions/{session}/entry",
    summary: "Replaces the whole entry over a known revision.",
    description:
      'With `If-Match: "REVISION"` the entry is replaced if it is still at that revision. With `If-None-Match: *` a session is made. An entry with another `sessionId` begins an empty session and archives the old one.',
    scope: "write",
    query: z.strictObject({
      ...sessionQuery,
      durability: z.enum(["none", "process", "disk"]).exactOptional(),
      createdAtMs: queryInteger(0).exactOptional(),
    }),
    body: { schema: openObject, most: mostOfEntry },
    headers: {
      "if-match": "the revision in quotes, as the ETag of the entry states it",
      "if-none-match": "`*`: there is no session yet",
    },
    answers: {
      200: {
        description: "The session with its entry.",
        schema: sessionSchema.extend({ began: z.boolean(), replacedSessionId: z.string().nullable() }),
      },
    },
    errors: [
      "REVISION_CONFLICT",
      "PRECONDITION_REQUIRED",
      "SESSION_EXISTS",
      "SESSION_ID_INVALID",
      "SESSION_ARCHIVED",
      "SESSION_NOT_FOUND",
      "ID_CASE_COLLISION",
      "KEY_INVALID",
      "CAPABILITY_UNSUPPORTED",
    ],
    handle: async ({ ref, view, query, body, header }) => {
      const at = ref();
      const store = view.store(at.agentId);
      const ifRevision = revisionOf(header("if-match"), header("if-none-match"));
      const { durability, createdAtMs } = query;
      const before = ifRevision === null ? null : await store.load(at);
      const state = await store.save(at, body as { sessionId: string }, {
        ifRevision,
        ...(durability === undefined ? {} : { durability }),
        ...(createdAtMs === undefined ? {} : { createdAtMs }),
      });
      const isOther = before !== null && before.sessionId !== state.sessionId;
      const said = { began: before === null || isOther, replacedSessionId: isOther ? before.sessionId : null };
      return json(200, { ...writtenSessionJson(view, state, true), ...said }, { etag: revisionTag(state) });
    },
  }),
  route({
    id: "changeEntry",
    method: "PATCH",
    path: "/sessions/{session}/entry",
    summary: "Sets and removes fields of the entry.",
    description:
      "A member that is null removes its field. Without `If-Match` the server repeats after a conflict. A token without `read` gets no fields back.",
    scope: "write",
    query: z.strictObject(sessionQuery),
    body: { schema: openObject, types: ["application/json", "application/merge-patch+json"], most: mostOfEntry },
    headers: { "if-match": "refuses the change unless the entry is at this revision" },
    answers: { 200: { description: "The entry as it is now.", schema: entrySchema } },
    errors: ["REVISION_CONFLICT", "SESSION_NOT_FOUND", "SESSION_ARCHIVED"],
    handle: async ({ ref, view, body, header }) => {
      const at = ref();
      if (Object.hasOwn(body, "sessionId"))
        throw refused(
          "INPUT_INVALID",
          "A change of the entry cannot set its sessionId: POST …/reset begins a session.",
        );
      const fields = Object.entries(body).map(([name, value]) => [name, value ?? undefined] as const);
      const changes = Object.fromEntries(fields);
      const store = view.store(at.agentId);
      const tag = header("if-match");
      if (tag === undefined) return answerOf(view, await updateEntry(store, at, (entry) => patchEntry(entry, changes)));
      const state = await store.load(at);
      if (state === null) throw sessionNotFound(at);
      const ifRevision = revisionOf(tag, undefined);
      return answerOf(view, await store.save(at, patchEntry(state.entry, changes), { ifRevision }));
    },
  }),
];

function answerOf(view: View, state: SessionState): Answer {
  const { sessionId, revision } = state;
  const entry = shownEntry(view, state);
  return json(200, { kind: "entry", sessionId, revision, entry }, { etag: revisionTag(state) });
}

/** @throws {ThroughlineError} PRECONDITION_REQUIRED without a condition, INPUT_INVALID for an unknown condition */
function revisionOf(match: string | undefined, noneMatch: string | undefined): number | null {
  if (match === undefined && noneMatch === "*") return null;
  if (match === undefined)
    throw refused("PRECONDITION_REQUIRED", "The entry is replaced over a known revision only: send If-Match.");
  const [, revision] = /^"(\d{1,15})"$/.exec(match) ?? [];
  if (revision === undefined)
    throw refused("INPUT_INVALID", 'If-Match is the revision of the entry in quotes, such as "3".');
  return Number(revision);
}
