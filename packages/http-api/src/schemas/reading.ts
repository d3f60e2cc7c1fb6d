import { z } from "zod";
import { atMs, openObject, seq } from "./values.ts";

const count = z.int().min(0);
const countOrNull = z.number().nullable();

const omittedSchema = z.array(z.looseObject({ fromSeq: seq, toSeq: seq, reason: z.string() }));

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
    thinkingLevel: z.string().nullable(),
    system: z.string().nullable(),
    messages: z.array(openObject).describe("as the provider's API takes them"),
    gauge: z
      .looseObject({
        tokens: count.describe("of the next request"),
        source: z.enum(["actual", "actual+delta", "tokenizer", "heuristic"]).describe("what the number is made of"),
        lowTokens: count,
        highTokens: count,
        windowTokens: countOrNull,
        percent: countOrNull,
      })
      .describe("how full the window is"),
    breakdown: z
      .looseObject({
        systemTokens: count,
        toolsTokens: count,
        summaryTokens: count,
        messageTokens: count,
        toolResultTokens: count,
      })
      .describe("adds up to the tokens of the gauge"),
    compactsAtTokens: countOrNull.describe("a larger context is compacted before its next turn; null: it is not known"),
    repairs: z.array(openObject).describe("what was changed to make the messages valid"),
    omitted: omittedSchema,
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
    api: z.string().describe("whose shapes the request had"),
    cut: openObject
      .nullable()
      .describe("where a history that is longer than the window was cut; null: all of it was sent"),
    estimatedTokens: count,
    actual: openObject.nullable().describe("the tokens that the provider reported; null when it reported none"),
    startedMs: countOrNull.describe(
      "when the request was sent, in UTC milliseconds; null in calls of earlier versions",
    ),
    firstByteMs: countOrNull.describe(
      "when the answer began: its first byte for a call through the gateway, its first text for another one",
    ),
    endedMs: countOrNull,
    outcome: z.string(),
  })
  .meta({ id: "call" });

export const requestSchema: z.ZodObject = z
  .looseObject({
    kind: z.literal("request"),
    callId: z.string(),
    provider: z.string(),
    model: z.string(),
    api: z.string().describe("whose shapes the messages have"),
    messages: z.array(openObject),
    systemHash: z.string().nullable().describe("the first 12 hex digits of the SHA-256; null: no system prompt"),
    toolsHash: z.string().nullable().describe("the same of the tools as JSON"),
    maxOutputTokens: countOrNull,
    system: z.string().nullable().describe("the text; null without one, and where the log holds its hash only"),
    tools: z.string().nullable().describe("the JSON; null without tools, and where the log holds their hash only"),
    breakdown: z
      .looseObject({
        prefixTokens: count.describe("of system prompt and tools"),
        summaryTokens: count,
        messageTokens: count.describe("without tool results"),
        toolResultTokens: count,
      })
      .describe("adds up to the tokens that the provider counted, else to the estimate"),
    places: z
      .array(
        z.array(
          z.looseObject({
            recordId: z.string().nullable().describe("null: no record holds the part"),
            seq: seq.nullable(),
            reason: z
              .enum(["kept", "summary", "shortened", "repaired", "made"])
              .describe(
                "`summary`: of the compaction; `shortened`: by the guard; `repaired`: the provider would refuse the part as it is; `made`: no record holds it",
              ),
            rule: z.string().nullable().describe("the repair, or the kind of the overflow"),
          }),
        ),
      )
      .describe("for each message where its parts come from, in their order"),
    omitted: omittedSchema.describe("the records that the request left out"),
  })
  .meta({ id: "request" });

export const compactionSchema: z.ZodObject = z
  .looseObject({
    kind: z.literal("compaction"),
    key: z.string(),
    sessionId: z.string(),
    state: z.enum(["compacted", "planned", "nothing", "superseded"]),
    reason: z.string().nullable().describe("why nothing was done"),
    id: z.string().nullable().describe("of its record"),
    seq: countOrNull,
    firstKeptSeq: countOrNull.describe("messages from here on are sent word for word"),
    tokensBefore: countOrNull,
    tokensAfter: countOrNull,
    messagesRemoved: countOrNull,
    source: z.string().nullable(),
    provider: z.string().nullable(),
    needsRetry: z.boolean().nullable().describe("no model wrote the summary, and one is asked later"),
  })
  .meta({ id: "compaction" });

export const checkpointSchema: z.ZodObject = z
  .looseObject({
    kind: z.literal("checkpoint"),
    key: z.string(),
    sessionId: z.string(),
    id: z.string().nullable().describe("null for one that was only planned"),
    seq: countOrNull,
    coversToSeq: countOrNull,
    tokensAtCheckpoint: countOrNull,
    summary: z.string().nullable(),
    model: z.string().nullable(),
    atMs: countOrNull,
  })
  .meta({ id: "checkpoint" });

const column = z.array(z.int());
const columnOrNull = z.array(z.int().nullable());

export const outlineSchema: z.ZodObject = z
  .looseObject({
    kind: z.literal("outline"),
    key: z.string(),
    sessionId: z.string(),
    fromSeq: seq,
    toSeq: seq,
    lastSeq: seq.describe("of the newest record of the session"),
    count,
    names: z
      .looseObject({ type: z.array(z.string()), role: z.array(z.string()), tool: z.array(z.string()) })
      .describe("the names that the columns give by their place"),
    columns: z.looseObject({
      seq: column.describe("difference to the row before; the first states its seq"),
      parent: columnOrNull.describe(
        "how many seqs before the record its parent stands; 0: none; null: before the rows",
      ),
      type: column,
      role: columnOrNull,
      tool: columnOrNull,
      side: column.describe("1 for a side record"),
      bytes: column,
      tsMs: columnOrNull.describe("difference to the last time before; null: the record states none"),
    }),
    nextFromSeq: seq.nullable().describe("asks for the rest; null: there is none"),
  })
  .meta({ id: "outline" });

export const findingSchema: z.ZodObject = z
  .looseObject({
    kind: z.literal("finding"),
    code: z.string(),
    severity: z.enum(["error", "warning", "info"]),
    key: z.string().nullable(),
    recordId: z.string().nullable(),
    message: z.string(),
    remedy: z.string(),
    repaired: z.boolean(),
  })
  .meta({ id: "finding" });

export const blockSchema: z.ZodObject = z
  .looseObject({
    kind: z.literal("block"),
    id: z.string().describe("of the record"),
    seq,
    block: count,
    type: z.string(),
    totalBytes: count.describe("of the whole block in UTF-8"),
    from: count.describe("where the text begins: moved to the beginning of a character"),
    text: z.string(),
    nextFrom: count.nullable().describe("asks for what follows; null: the block ends here"),
  })
  .meta({ id: "block" });

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
    recordBytes: countOrNull.describe("of all records, forks included"),
    countedAtMs: countOrNull,
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
