import type { SessionRef, SessionStore, VectorsFacet } from "@throughline/core";
import { refused } from "@throughline/core/internal";
import { z } from "zod";
import { json, list } from "../http/answer.ts";
import { present } from "../http/present.ts";
import { route, type RouteDefinition } from "../http/route.ts";
import { sessionQuery } from "../schemas/session.ts";
import { listOf, queryInteger, seq } from "../schemas/values.ts";
import type { View } from "../security/view.ts";

const atSession = { agentId: z.string(), key: z.string(), archiveId: z.string().nullable(), sessionId: z.string() };
const model = z.string().min(1).max(500).describe("the id of the embedder, `provider/model@dimensions`");
/** The longest vectors of known models have 4,096 numbers. */
const vectorText = z.string().max(256_000).describe("32-bit floating-point numbers, low byte first, in base64");

const pendingSchema = z
  .looseObject({
    kind: z.literal("pendingVectors"),
    ranges: z.array(
      z.looseObject({
        ...atSession,
        fromSeq: seq,
        toSeq: seq,
        coveredSeq: seq.describe("up to which the session had vectors before"),
        mark: z.string().describe("changes with each removal of content; a put states it"),
      }),
    ),
    records: z.int().min(0).describe("records without vectors, also those of ranges that are not listed"),
    hasOthers: z.boolean().describe("whether there are vectors of another model"),
  })
  .meta({ id: "pendingVectors" });

const nearestSchema = z
  .looseObject({
    kind: z.literal("nearestHit"),
    ...atSession,
    firstSeq: seq,
    lastSeq: seq,
    part: z.int().min(0),
    score: z.number().describe("the cosine of the angle between both vectors"),
  })
  .meta({ id: "nearestHit" });

export const vectorRoutes: readonly RouteDefinition[] = [
  route({
    id: "getPendingVectors",
    method: "GET",
    path: "/vectors/pending",
    summary: "The records of an agent that have no vectors of a model yet, those of the newest sessions first.",
    description:
      "Who fills vectors reads these records, asks an embedder and puts the answers. The server asks none for it.",
    scope: "read",
    query: z.strictObject({ agent: z.string().exactOptional(), model, limit: queryInteger(1, 1000).exactOptional() }),
    answers: { 200: { description: "The ranges.", schema: pendingSchema } },
    errors: ["CAPABILITY_UNSUPPORTED"],
    handle: async ({ view, query, signal }) => {
      const { vectors, scope } = vectorsOf(view, query.agent);
      const { limit } = query;
      const { ranges, ...counts } = await vectors.pending(scope, present({ model: query.model, limit, signal }));
      return json(200, {
        kind: "pendingVectors",
        ranges: ranges.map(({ ref, ...range }) => ({ ...placeOf(ref), ...range })),
        ...counts,
      });
    },
  }),
  route({
    id: "findNearest",
    method: "POST",
    path: "/vectors/nearest",
    summary: "The texts of an agent whose vectors are nearest to one, nearest first.",
    scope: "read",
    body: {
      schema: z.strictObject({
        agent: z.string().exactOptional(),
        session: z.string().exactOptional().describe("only the session with this key, and its archived ones"),
        model,
        vector: vectorText,
        state: z.enum(["active", "archived", "any"]).exactOptional().describe("any without it"),
        limit: z.int().min(1).max(200).exactOptional().describe("50 without it"),
      }),
    },
    answers: { 200: { description: "The texts.", schema: listOf(nearestSchema) } },
    errors: ["CAPABILITY_UNSUPPORTED"],
    handle: async ({ view, body: { agent, session: key, vector, ...query }, signal }) => {
      const { vectors, scope } = vectorsOf(view, agent);
      const asked = present({ ...scope, ...query, key, vector: numbersOf(vector), signal });
      const hits = await vectors.nearest(asked);
      return list(hits.map(({ ref, ...hit }) => JSON.stringify({ kind: "nearestHit", ...placeOf(ref), ...hit })));
    },
  }),
  route({
    id: "putVectors",
    method: "PUT",
    path: "/sessions/{session}/vectors",
    summary: "Keeps the vectors of a range of records, in place of those that it had.",
    description:
      "`isStored` is false, and nothing is changed, when content of the session was removed since its `mark` was read. Repeating it changes nothing.",
    scope: "write",
    query: z.strictObject(sessionQuery),
    body: {
      schema: z.strictObject({
        model,
        mark: z.string().max(500),
        fromSeq: seq,
        toSeq: seq,
        resumeSeq: seq.describe("where the next range starts when the session grows"),
        vectors: z
          .array(z.strictObject({ firstSeq: seq, lastSeq: seq, part: z.int().min(0), vector: vectorText }))
          .max(10_000)
          .describe("none: the records have no text"),
      }),
    },
    answers: {
      200: {
        description: "Whether they are kept.",
        schema: z.looseObject({ kind: z.literal("vectors"), isStored: z.boolean() }),
      },
    },
    errors: ["SESSION_NOT_FOUND", "CAPABILITY_UNSUPPORTED"],
    handle: async ({ ref, view, body: { vectors: given, ...put }, signal }) => {
      const at = ref();
      const vectors = given.map(({ vector, ...text }) => ({ ...text, vector: numbersOf(vector) }));
      const isStored = await facetOf(view.store(at.agentId)).put(at, { ...put, vectors }, { signal });
      return json(200, { kind: "vectors", isStored });
    },
  }),
  route({
    id: "forgetVectors",
    method: "DELETE",
    path: "/vectors",
    summary: "Deletes the vectors of an agent, except those of one model. The records stay.",
    scope: "write",
    query: z.strictObject({
      agent: z.string().exactOptional(),
      keep: model.exactOptional().describe("the model whose vectors stay; none without it"),
    }),
    answers: {
      200: {
        description: "How many there were.",
        schema: z.looseObject({ kind: z.literal("forgottenVectors"), vectors: z.int().min(0) }),
      },
    },
    errors: ["CAPABILITY_UNSUPPORTED"],
    handle: async ({ view, query: { agent, keep } }) => {
      const { vectors, scope } = vectorsOf(view, agent);
      return json(200, { kind: "forgottenVectors", vectors: await vectors.forget(scope, present({ keep })) });
    },
  }),
];

function placeOf({ agentId, key, archiveId }: SessionRef): {
  readonly agentId: string;
  readonly key: string;
  readonly archiveId: string | null;
} {
  return { agentId, key, archiveId: archiveId ?? null };
}

function vectorsOf(
  view: View,
  agent: string | undefined,
): { readonly vectors: VectorsFacet; readonly scope: { readonly namespace: string; readonly agentId: string } } {
  const agentId = agent ?? view.onlyAgent ?? "main";
  return { vectors: facetOf(view.store(agentId)), scope: { namespace: view.namespace, agentId } };
}

function facetOf({ vectors, capabilities }: SessionStore): VectorsFacet {
  if (vectors !== undefined) return vectors;
  throw refused("CAPABILITY_UNSUPPORTED", `The store ${capabilities.name} keeps no vectors.`, { needs: "vectors" });
}

function numbersOf(text: string): Float32Array {
  const bytes = new Uint8Array(Buffer.from(text, "base64"));
  if (bytes.length === 0 || bytes.length % 4 !== 0)
    throw refused("INPUT_INVALID", "A vector is base64 of 32-bit numbers.", { bytes: bytes.length });
  return new Float32Array(bytes.buffer);
}
