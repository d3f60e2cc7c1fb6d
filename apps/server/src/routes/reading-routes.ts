import { loadExisting, readWindow } from "@throughline/core";
import { listCheckpoints } from "@throughline/checkpoint";
import { classifyOverflow, recoveryAction } from "@throughline/guard";
import { buildContext, historyTargets, limitContext } from "@throughline/history";
import type { Context, TargetName } from "@throughline/history";
import { findRecord, listSessions, sessionTotals } from "@throughline/queries";
import {
  entryWindowTokens,
  matchSession,
  omittedWithWindow,
  sessionLabel,
  withinMemory,
} from "@throughline/queries/internal";
import { refused } from "@throughline/core/store";
import { readCalls, readHistoryCut } from "@throughline/session";
import { z } from "zod";
import { json, list } from "../http/answer.ts";
import { decodeSegment } from "../http/session-segment.ts";
import { route, type RouteDefinition } from "../http/route.ts";
import { callJson, diagnosisJson } from "../json-shapes.ts";
import { callSchema, checkpointSchema, contextSchema, diagnosisSchema, statsSchema } from "../schemas/reading.ts";
import { recordSchema } from "../schemas/record.ts";
import { sessionQuery, sessionSchema } from "../schemas/session.ts";
import { listOf, openObject, queryInteger } from "../schemas/values.ts";
import { recordText } from "./record-text.ts";
import { sessionJson } from "./session-json.ts";
import { mostPageRecords } from "./store-routes.ts";

const providers = ["neutral", ...historyTargets.keys()] as const;

/** What the command line shows of a session, over HTTP. */
export const readingRoutes: readonly RouteDefinition[] = [
  route({
    id: "getRecord",
    method: "GET",
    path: "/sessions/{session}/records/{id}",
    summary: "One record, by its id or its seq.",
    scope: "read",
    query: z.strictObject(sessionQuery),
    answers: { 200: { description: "The record, its line as it is kept.", schema: recordSchema } },
    errors: ["SESSION_NOT_FOUND", "RECORD_NOT_FOUND"],
    handle: async ({ ref, view, parameters, signal }) => {
      const at = ref();
      const store = view.store(at.agentId);
      const { seq } = await findRecord(store, at, decodeSegment(parameters["id"] ?? ""), signal);
      for await (const { records } of store.read(at, { afterSeq: seq - 1, limit: 1, payload: "source", signal }))
        for (const record of records) return { kind: "json", status: 200, text: recordText(record) };
      throw refused("RECORD_NOT_FOUND", "The record is not there any more.", {});
    },
  }),
  route({
    id: "getContext",
    method: "GET",
    path: "/sessions/{session}/context",
    summary: "The messages that a model is given next, valid for its provider.",
    description: "`provider=neutral`, which holds without it, gives the messages as they are kept.",
    scope: "read",
    query: z.strictObject({
      ...sessionQuery,
      provider: z.enum(providers as readonly [string, ...string[]]).exactOptional(),
      model: z.string().exactOptional().describe("`provider/name` or a name; the session's own without it"),
      window: queryInteger(1).exactOptional().describe("the model's window in tokens; the session's own without it"),
    }),
    answers: { 200: { description: "The context.", schema: contextSchema } },
    errors: ["SESSION_NOT_FOUND", "RECORD_FROM_NEWER_VERSION"],
    handle: async ({ ref, view, query, signal }) => {
      const at = ref();
      const { provider = "neutral", model: named, window } = query;
      const { state, records } = await readWindow(withinMemory(view.store(at.agentId)), at, { signal });
      const whole = buildContext(records, { headId: state.head.headId });
      const cut = readHistoryCut(records, window ?? entryWindowTokens(state.entry["contextTokens"]));
      const built = cut === null ? whole : limitContext(whole, { recorded: cut });
      const rendered = render(built, provider, named);
      const own = built.model;
      return json(200, {
        kind: "context",
        key: at.key,
        sessionId: state.sessionId,
        provider,
        model: named ?? (own === null ? null : `${own.provider}/${own.modelId}`),
        headId: built.headId,
        lastSeq: state.head.lastSeq,
        recordsInContext: built.recordsInContext,
        ...rendered,
        omitted: omittedWithWindow(built, records),
      });
    },
  }),
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
    errors: ["SESSION_NOT_FOUND", "RECORD_NOT_FOUND"],
    handle: async ({ ref, view, parameters, signal }) => {
      const at = ref();
      const id = decodeSegment(parameters["id"] ?? "");
      const { shown } = await readCalls(view.store(at.agentId), at, {}, { signal });
      const call = shown.find(({ callId }) => callId === id);
      if (call === undefined) throw refused("RECORD_NOT_FOUND", "The session has no call with this id.", { id });
      return json(200, callJson(call));
    },
  }),
  route({
    id: "listCheckpoints",
    method: "GET",
    path: "/sessions/{session}/checkpoints",
    summary: "The checkpoints of a session, the oldest first.",
    scope: "read",
    query: z.strictObject({
      ...sessionQuery,
      limit: queryInteger(1, mostPageRecords).exactOptional().describe("the newest; all without it"),
    }),
    answers: { 200: { description: "The checkpoints.", schema: listOf(checkpointSchema) } },
    errors: ["SESSION_NOT_FOUND"],
    handle: async ({ ref, view, query, signal }) => {
      const at = ref();
      const store = view.store(at.agentId);
      const { sessionId } = await loadExisting(store, at);
      const all = await listCheckpoints(store, at, { signal });
      const shown = query.limit === undefined ? all : all.slice(-query.limit);
      return list(
        shown.map((checkpoint) => JSON.stringify({ kind: "checkpoint", key: at.key, sessionId, ...checkpoint })),
      );
    },
  }),
  route({
    id: "resolveSession",
    method: "GET",
    path: "/resolve",
    summary: "The sessions that a text may name: an exact key or id, else the beginning of a key, id or label.",
    scope: "read",
    query: z.strictObject({ agent: sessionQuery.agent, q: z.string() }),
    answers: { 200: { description: "One session, several, or none.", schema: listOf(sessionSchema) } },
    errors: [],
    handle: async ({ view, query, signal }) => {
      const agentId = query.agent ?? view.onlyAgent ?? undefined;
      const asked = { namespace: view.namespace, ...(agentId === undefined ? {} : { agentId }), state: "any" as const };
      const candidates = [];
      for await (const state of listSessions(view.store(agentId), { ...asked, signal }))
        candidates.push({
          key: state.ref.key,
          sessionId: state.sessionId,
          label: sessionLabel(state.entry),
          isArchived: state.archived,
          state,
        });
      const found = matchSession(query.q, candidates);
      const all = found.kind === "one" ? [found.candidate] : found.kind === "none" ? [] : found.candidates;
      return list(all.map(({ state }) => JSON.stringify(sessionJson(state))));
    },
  }),
  route({
    id: "getStats",
    method: "GET",
    path: "/stats",
    summary: "Counts what is in the namespace, from the index of the store.",
    scope: "read",
    query: z.strictObject({ agent: sessionQuery.agent }),
    answers: { 200: { description: "The counts.", schema: statsSchema } },
    errors: [],
    handle: async ({ context, view, query, signal }) => {
      const agentId = query.agent ?? view.onlyAgent ?? undefined;
      const store = view.store(agentId);
      const agent = agentId === undefined ? {} : { agentId };
      const totals = await sessionTotals(store, { namespace: view.namespace, ...agent, signal });
      const { name, defaultDurability } = context.store.capabilities;
      const searchLag = context.store.search === undefined ? null : await context.store.search.lag();
      return json(200, { kind: "stats", storeName: name, defaultDurability, ...totals, searchLag });
    },
  }),
  route({
    id: "diagnose",
    method: "POST",
    path: "/diagnose",
    summary: "What an error of a provider means: an overflow or not, its sizes, and what the guard would do.",
    scope: "read",
    query: z.strictObject({ provider: z.string().exactOptional().describe("the provider, if the error does not say") }),
    body: { schema: openObject },
    answers: { 200: { description: "The diagnosis.", schema: diagnosisSchema } },
    errors: [],
    handle: async ({ query, body }) => {
      const found = classifyOverflow(body, query.provider === undefined ? {} : { provider: query.provider });
      return json(200, diagnosisJson(found, recoveryAction(found)));
    },
  }),
];

function render(
  built: Context,
  provider: string,
  named: string | undefined,
): { readonly system: string | null; readonly messages: readonly unknown[]; readonly repairs: readonly unknown[] } {
  const target = historyTargets.get(provider as TargetName);
  if (target === undefined) return { system: null, messages: built.messages, repairs: [] };
  const slash = named?.indexOf("/") ?? -1;
  const model = named === undefined || slash === -1 ? null : [named.slice(0, slash), named.slice(slash + 1)];
  const asked = model === null ? {} : { target: { provider: model[0] ?? "", modelId: model[1] ?? "" } };
  const { system, messages, repairs } = target.render(built, asked);
  return { system, messages, repairs };
}
