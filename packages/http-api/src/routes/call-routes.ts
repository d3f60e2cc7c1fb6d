import { findRecord, refused, runInSlices } from "@throughline/core/internal";
import { withinMemory } from "@throughline/core/internal/node";
import { readCalls } from "@throughline/session";
import { readCall, rebuildSteps, type FoundCall } from "@throughline/session/internal";
import { z } from "zod";
import type { RecordHead } from "@throughline/core/internal";
import type { SessionRef, SessionStore, StoredRecord } from "@throughline/core";
import { readExchange, rebuildRequest } from "@throughline/gateway/internal";
import { type Answer, json, largeJson, list } from "../http/answer.ts";
import { decodeSegment } from "../http/session-segment.ts";
import { route, type ApiRequest, type RouteDefinition } from "../http/route.ts";
import { callJson } from "../json-shapes.ts";
import { callSchema, requestSchema } from "../schemas/reading.ts";
import { sessionQuery } from "../schemas/session.ts";
import { listOf, queryInteger } from "../schemas/values.ts";
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
    }),
    answers: { 200: { description: "The calls, the oldest first.", schema: listOf(callSchema) } },
    errors: ["SESSION_NOT_FOUND"],
    handle: async ({ ref, view, query, signal }) => {
      const at = ref();
      const { turn, tail = 100 } = query;
      const asked = { tail, ...(turn === undefined ? {} : { turn }) };
      const { shown } = await readCalls(view.store(at.agentId), at, asked, { signal });
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
      "A record that was redacted since is not what it was then. System prompt and tools are in no log: their hashes are given. `payload=bytes` gives the exact bytes of a call through the gateway; other calls have none (CAPABILITY_UNSUPPORTED). A body that was sent packed is given unpacked.",
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
    handle: async (request) => {
      if (request.query.payload === "bytes") return requestBytes(request);
      const { call, records, loadFiles } = await findCall(request);
      const { facts, callId, provider, model } = call;
      const { api, systemHash, toolsHash, maxOutputTokens } = facts;
      const files = await loadFiles();
      const { messages } = await runInSlices(rebuildSteps(records, facts, { system: null, tools: [], files }));
      const known = { systemHash, toolsHash, maxOutputTokens };
      return largeJson(200, { kind: "request", callId, provider, model, api, messages, ...known });
    },
  }),
];

/**
 * Rebuilds the exact body of a call through the gateway.
 * @throws {ThroughlineError} RECORD_NOT_FOUND also when a part of the body was redacted, CAPABILITY_UNSUPPORTED
 */
async function requestBytes({ ref, view, parameters, signal }: FindingRequest): Promise<Answer> {
  const at = ref();
  const id = decodeSegment(parameters["id"] ?? "");
  const store = withinMemory(view.store(at.agentId));
  const call = await oneRecord(store, at, await findRecord(store, at, id, signal), signal);
  const data = call?.record["data"];
  const exchangeId = typeof data === "object" && data !== null ? (data as { exchangeId?: unknown }).exchangeId : null;
  if (typeof exchangeId !== "string")
    throw refused("CAPABILITY_UNSUPPORTED", "The exact bytes of a request are kept for calls of a gateway only.", {
      needs: "gateway",
    });
  const exchange = await oneRecord(store, at, await findRecord(store, at, exchangeId, signal), signal);
  const facts = exchange === null ? null : readExchange(exchange);
  if (facts?.encoding === "base64" && facts.frame.length === 0)
    throw refused("RECORD_NOT_FOUND", "The body of the request could not be read, and was too large to be kept.", {
      id,
    });
  try {
    if (exchange === null || facts === null) throw new RangeError("The exchange of the call is redacted or missing.");
    const body = await rebuildRequest(store.read(at, { beforeSeq: exchange.seq, signal }), facts);
    return { kind: "text", status: 200, type: "application/octet-stream", body: inOne(body) };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw refused("RECORD_NOT_FOUND", "Something that the request held was redacted or removed.", { id }, error);
  }
}

async function* inOne(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, void> {
  yield bytes;
}

async function oneRecord(
  store: SessionStore,
  at: SessionRef,
  { seq }: Pick<RecordHead, "seq">,
  signal: AbortSignal,
): Promise<StoredRecord | null> {
  for await (const { records } of store.read(at, { afterSeq: seq - 1, limit: 1, signal })) return records[0] ?? null;
  return null;
}

type FindingRequest = Pick<ApiRequest, "ref" | "view" | "parameters" | "signal">;

/** @throws {ThroughlineError} RECORD_NOT_FOUND */
async function findCall({ ref, view, parameters, signal }: FindingRequest): Promise<FoundCall> {
  const at = ref();
  const id = decodeSegment(parameters["id"] ?? "");
  const store = withinMemory(view.store(at.agentId));
  const found = await readCall(store, at, await findRecord(store, at, id, signal), { signal });
  if (found === null) throw refused("RECORD_NOT_FOUND", "The session has no call with this id.", { id });
  return found;
}
