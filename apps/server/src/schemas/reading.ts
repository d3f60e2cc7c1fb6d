import { z } from "zod";
import { atMs, openObject, seq } from "./values.ts";

const count = z.int().min(0);
const countOrNull = z.number().nullable();

export const contextSchema: z.ZodObject = z
  .looseObject({
    kind: z.literal("context"),
    key: z.string(),
    sessionId: z.string(),
    provider: z.string(),
    model: z.string().nullable(),
    headId: z.string().nullable(),
    lastSeq: seq,
    recordsInContext: count,
    system: z.string().nullable(),
    messages: z.array(openObject).describe("as the provider's API takes them"),
    repairs: z.array(openObject).describe("what was changed to make the messages valid"),
    omitted: z.array(z.looseObject({ fromSeq: seq, toSeq: seq, reason: z.string() })),
  })
  .meta({ id: "context" });

export const callSchema: z.ZodObject = z
  .looseObject({
    kind: z.literal("call"),
    callId: z.string(),
    turnId: z.string(),
    step: count,
    attempt: count,
    atMs,
    provider: z.string(),
    model: z.string(),
    fromSeq: seq,
    toSeq: seq,
    summaryId: z.string().nullable(),
    messageCount: count,
    windowTokens: countOrNull,
    changes: z.array(openObject),
    estimatedTokens: count,
    outcome: z.string(),
  })
  .meta({ id: "call" });

export const checkpointSchema: z.ZodObject = z
  .looseObject({
    kind: z.literal("checkpoint"),
    key: z.string(),
    sessionId: z.string(),
    id: z.string(),
    seq,
    coversToSeq: countOrNull,
    summary: z.string(),
    model: z.string().nullable(),
    atMs,
  })
  .meta({ id: "checkpoint" });

export const statsSchema: z.ZodObject = z
  .looseObject({
    kind: z.literal("stats"),
    storeName: z.string(),
    defaultDurability: z.string(),
    agents: count,
    sessions: count,
    archivedSessions: count,
    records: count,
    messages: count,
    firstAtMs: countOrNull,
    lastAtMs: countOrNull,
    searchLag: countOrNull,
  })
  .meta({ id: "stats" });

export const diagnosisSchema: z.ZodObject = z
  .looseObject({
    kind: z.literal("diagnosis"),
    overflow: z.boolean(),
    overflowKind: z.string().nullable(),
    category: z.string().nullable(),
    inputTokens: countOrNull,
    limitTokens: countOrNull,
    maxOutputTokens: countOrNull,
    retryAfterMs: countOrNull,
    rule: z.string(),
    action: z.string(),
  })
  .meta({ id: "diagnosis" });
