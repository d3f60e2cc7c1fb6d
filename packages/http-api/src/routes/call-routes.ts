import { findRecord, onePiece } from "@throughline/core/internal";
import { readCalls } from "@throughline/session";
import { z } from "zod";
import { type Answer, json, list } from "../http/answer.ts";
import { route, type RouteDefinition } from "../http/route.ts";
import { callJson } from "../json-shapes.ts";
import { callSchema, requestSchema } from "../schemas/reading.ts";
import { sessionQuery } from "../schemas/session.ts";
import { listOf, queryInteger } from "../schemas/values.ts";
import { callRequest } from "./call-request.ts";
import { type CallApiRequest, findCall, rebuildSent } from "./found-call.ts";
import { mostPageRecords } from "./store-routes.ts";

export const callRoutes: readonly RouteDefinition[] = [
  route({
    id: "listCalls",
    method: "GET",
    path: "/sessions/{session}/calls",
    summary: "What each past call of a model was given, and what was shortened for it.",
    scope: "read",
    query: z.strictObject({
      ...sessionQuery,
      turn: z.string().exactOptional().describe("only calls of this turn"),
      tail: queryInteger(1, mostPageRecords).exactOptional().describe("the newest; 100 without it, at most 500"),
      before: z.string().exactOptional().describe("only calls before the one with this id: the page before"),
    }),
    answers: { 200: { description: "The calls, the oldest first.", schema: listOf(callSchema) } },
    errors: ["SESSION_NOT_FOUND", "RECORD_NOT_FOUND"],
    handle: async ({ ref, view, query, signal }) => {
      const at = ref();
      const { turn, tail = 100, before } = query;
      const store = view.store(at.agentId);
      const beforeSeq = before === undefined ? {} : { beforeSeq: (await findRecord(store, at, before, signal)).seq };
      const asked = { tail, ...(turn === undefined ? {} : { turn }), ...beforeSeq };
      const { shown } = await readCalls(store, at, asked, { signal });
      return list(shown.map((call) => JSON.stringify(callJson(call))));
    },
  }),
  route({
    id: "getCall",
    method: "GET",
    path: "/sessions/{session}/calls/{id}",
    summary: "One past call of a model.",
    scope: "read",
    query: z.strictObject(sessionQuery),
    answers: { 200: { description: "The call.", schema: callSchema } },
    errors: ["SESSION_NOT_FOUND", "RECORD_NOT_FOUND", "MEMORY_SHORT"],
    handle: async (request) => json(200, callJson((await findCall(request)).call)),
  }),
  route({
    id: "getCallRequest",
    method: "GET",
    path: "/sessions/{session}/calls/{id}/request",
    summary: "The messages that a past call sent, rebuilt from the log.",
    description:
      "A record that was redacted since is not what it was then. System prompt and tools are given for calls through the gateway. For other calls the log holds their hashes only. `payload=bytes` gives the exact bytes of a call through the gateway; other calls have none (CAPABILITY_UNSUPPORTED). A body that was sent packed is given unpacked.",
    scope: "read",
    query: z.strictObject({
      ...sessionQuery,
      payload: z.enum(["messages", "bytes"]).exactOptional().describe("messages without it"),
    }),
    answers: { 200: { description: "The request.", schema: requestSchema } },
    errors: [
      "SESSION_NOT_FOUND",
      "RECORD_NOT_FOUND",
      "RECORD_FROM_NEWER_VERSION",
      "CAPABILITY_UNSUPPORTED",
      "MEMORY_SHORT",
    ],
    handle: (request) => (request.query.payload === "bytes" ? sentBytes(request) : callRequest(request)),
  }),
];

/** @throws {ThroughlineError} RECORD_NOT_FOUND, CAPABILITY_UNSUPPORTED */
async function sentBytes(request: CallApiRequest): Promise<Answer> {
  const { body } = await rebuildSent(request);
  return { kind: "text", status: 200, type: "application/octet-stream", body: onePiece(body) };
}
