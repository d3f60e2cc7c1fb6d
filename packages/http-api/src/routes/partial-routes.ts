import type { PartialReply, PartialsFacet, SessionStore } from "@throughline/core";
import { refused } from "@throughline/core/internal";
import { z } from "zod";
import { json, type Answer } from "../http/answer.ts";
import { route, type RouteDefinition } from "../http/route.ts";
import { sessionQuery } from "../schemas/session.ts";
import { openObject, queryInteger } from "../schemas/values.ts";

const partialSchema = z
  .looseObject({ kind: z.literal("partial"), partial: openObject.nullable() })
  .meta({ id: "partial" });
const answerOf = (partial: PartialReply | null): Answer => json(200, { kind: "partial", partial });

export const partialRoutes: readonly RouteDefinition[] = [
  route({
    id: "getPartial",
    method: "GET",
    path: "/sessions/{session}/partial",
    summary: "The reply of the open turn as far as it was shown; null when there is none.",
    scope: "read",
    query: z.strictObject(sessionQuery),
    answers: { 200: { description: "The partial reply, or null.", schema: partialSchema } },
    errors: ["SESSION_NOT_FOUND", "CAPABILITY_UNSUPPORTED", "CODEC_FAILED"],
    handle: async ({ ref, view }) => {
      const at = ref();
      return answerOf(await partialsOf(view.store(at.agentId)).read(at));
    },
  }),
  route({
    id: "putPartial",
    method: "PUT",
    path: "/sessions/{session}/partial",
    summary: "Keeps the reply of the open turn as far as it was shown, in place of the one before.",
    description: "Refused when the turn it names is not the open one of the session. Repeating it changes nothing.",
    scope: "write",
    query: z.strictObject(sessionQuery),
    body: { schema: openObject },
    answers: { 200: { description: "It is kept.", schema: partialSchema } },
    errors: [
      "SESSION_NOT_FOUND",
      "SESSION_ARCHIVED",
      "TURN_FENCED",
      "RECORD_TOO_LARGE",
      "INPUT_INVALID",
      "CAPABILITY_UNSUPPORTED",
      "CODEC_FAILED",
    ],
    handle: async ({ ref, view, body }) => {
      const at = ref();
      // Core validates each field, so the cast is safe.
      await partialsOf(view.store(at.agentId)).write(at, body as unknown as PartialReply);
      return answerOf(null);
    },
  }),
  route({
    id: "removePartial",
    method: "DELETE",
    path: "/sessions/{session}/partial",
    summary: "Removes the partial reply of the turn with this fence, and of earlier turns.",
    scope: "write",
    query: z.strictObject({ ...sessionQuery, fence: queryInteger(0) }),
    answers: { 200: { description: "There is none up to this fence.", schema: partialSchema } },
    errors: ["CAPABILITY_UNSUPPORTED"],
    handle: async ({ ref, view, query }) => {
      const at = ref();
      await partialsOf(view.store(at.agentId)).remove(at, query.fence);
      return answerOf(null);
    },
  }),
];

function partialsOf({ partials, capabilities }: SessionStore): PartialsFacet {
  if (partials !== undefined) return partials;
  const message = `The store ${capabilities.name} keeps no partial replies.`;
  throw refused("CAPABILITY_UNSUPPORTED", message, { needs: "partials" });
}
