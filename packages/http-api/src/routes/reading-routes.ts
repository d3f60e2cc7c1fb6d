import { classifyOverflow } from "@throughline/guard";
import { recoveryAction } from "@throughline/guard/internal";
import {
  findRecord,
  listSessions,
  matchSession,
  refused,
  sessionCandidate,
  sessionTotals,
} from "@throughline/core/internal";
import { z } from "zod";
import { json, list } from "../http/answer.ts";
import { present } from "../http/present.ts";
import { decodeSegment } from "../http/session-segment.ts";
import { usedBytes } from "../operations/usage-meter.ts";
import { route, type RouteDefinition } from "../http/route.ts";
import { diagnosisJson } from "../json-shapes.ts";
import { blockSchema, diagnosisSchema, statsSchema } from "../schemas/reading.ts";
import { recordSchema } from "../schemas/record.ts";
import { sessionQuery, sessionSchema } from "../schemas/session.ts";
import { listOf, openObject, queryInteger } from "../schemas/values.ts";
import { blockPart, mostBlockBytes } from "./record-block.ts";
import { recordText } from "./record-text.ts";
import { sessionJson } from "./session-json.ts";

export const readingRoutes: readonly RouteDefinition[] = [
  route({
    id: "getRecord",
    method: "GET",
    path: "/sessions/{session}/records/{id}",
    summary: "One record, by its id or its seq, or a part of one of its blocks.",
    description: "With `block` the answer is a part of that block's text, so that a large one is read in steps.",
    scope: "read",
    query: z.strictObject({
      ...sessionQuery,
      block: queryInteger(0).exactOptional().describe("the place of a block in the content of the message, from 0"),
      from: queryInteger(0).exactOptional().describe("the first byte of the block's text; 0 without it"),
      bytes: queryInteger(4, mostBlockBytes).exactOptional().describe("the most bytes; 262,144 without it"),
    }),
    answers: {
      200: {
        description: "The record, its line as it is kept; or the part.",
        schema: z.union([recordSchema, blockSchema]),
      },
    },
    errors: ["SESSION_NOT_FOUND", "RECORD_NOT_FOUND"],
    handle: async ({ ref, view, parameters, query, signal }) => {
      const at = ref();
      const store = view.store(at.agentId);
      const { block, from, bytes } = query;
      if (block === undefined && (from ?? bytes) !== undefined)
        throw refused("INPUT_INVALID", "from and bytes are of a block: name it.", { path: "block" });
      const { seq } = await findRecord(store, at, decodeSegment(parameters["id"] ?? ""), signal);
      for await (const { records } of store.read(at, { afterSeq: seq - 1, limit: 1, payload: "source", signal }))
        for (const record of records) {
          if (block === undefined) return { kind: "json", status: 200, text: recordText(record) };
          return json(200, blockPart(record, block, present({ from, bytes })));
        }
      throw refused("RECORD_NOT_FOUND", "The record is not there any more.", {});
    },
  }),
  route({
    id: "resolveSession",
    method: "GET",
    path: "/resolve",
    summary:
      "The sessions that a text may name: an exact key or id, else the beginning of a key, id, label or title, else all words of a label or title.",
    scope: "read",
    query: z.strictObject({ agent: sessionQuery.agent, q: z.string() }),
    answers: { 200: { description: "One session, several, or none.", schema: listOf(sessionSchema) } },
    errors: [],
    handle: async ({ view, query, signal }) => {
      const agentId = query.agent ?? view.onlyAgent ?? undefined;
      const asked = { namespace: view.namespace, ...(agentId === undefined ? {} : { agentId }), state: "any" as const };
      const candidates = [];
      for await (const state of listSessions(view.store(agentId), { ...asked, signal }))
        candidates.push({ ...sessionCandidate(state), state });
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
    description:
      "`recordBytes` are the bytes of all records, counted in the background at most once a minute and at `countedAtMs`; both are null until the first count has ended. There are no quotas.",
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
      const usage = await context.usage.of(view.namespace);
      const counted = {
        recordBytes: usage === null ? null : usedBytes(usage, agentId),
        countedAtMs: usage === null ? null : usage.atMs,
      };
      return json(200, { kind: "stats", storeName: name, defaultDurability, ...totals, ...counted, searchLag });
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
