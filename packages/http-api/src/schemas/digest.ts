import { z } from "zod";
import { atMs, seq } from "./values.ts";

const count = z.int().min(0);
const place = { key: z.string(), sessionId: z.string(), lastSeq: seq.describe("of the newest record that was read") };

export const digestSchema: z.ZodObject = z
  .looseObject({
    kind: z.literal("digest"),
    ...place,
    headId: z.string().nullable(),
    prompts: z
      .array(
        z.looseObject({
          seq,
          toSeq: seq.describe("the last record before the next prompt"),
          tsMs: atMs.nullable(),
          text: z.string().describe("the first line, to 120 characters, without what programs put around it"),
          tools: count,
          errors: count,
          files: count.describe("files that calls wrote, each once"),
          outputTokens: z.number(),
        }),
      )
      .describe("what people said on the way to the head"),
    errors: z.array(seq).describe("failed results of tools, commands and replies on the way to the head"),
    shortened: z.array(seq).describe("records of calls whose request was shortened"),
    marks: z
      .array(seq)
      .describe("records of type `custom` that a transcript shows: redactions, and edits of earlier messages"),
    branches: z
      .array(z.looseObject({ seq, records: z.int().min(1) }))
      .describe("the first record of each branch beside the way to the head, and how many records it has"),
    compactions: z.array(
      z.looseObject({
        seq,
        tokensBefore: z.number().nullable(),
        tokensAfter: z.number().nullable(),
        source: z.string().nullable(),
      }),
    ),
    axis: z
      .looseObject({
        fromMs: z.number(),
        toMs: z.number(),
        buckets: z.array(
          z.looseObject({
            fromMs: z.number(),
            toMs: z
              .number()
              .describe("a later `fromMs` of the next one is a pause, or a time in which nothing happened"),
            prompts: count,
            replies: count,
            tools: count,
            errors: count,
            tokens: z.number().describe("that models wrote"),
            fillTokens: z.number().nullable().describe("how full the window was at last; null: no reply says"),
          }),
        ),
      })
      .nullable()
      .describe("at most 600 buckets over the time without pauses of more than 5 minutes; null without any time"),
  })
  .meta({ id: "digest" });

export const changedFileSchema: z.ZodObject = z
  .looseObject({
    kind: z.literal("changedFile"),
    path: z.string().describe("below the folder of the session, or as the calls state it"),
    changes: count.describe("that did not fail"),
    failed: count,
    added: count.describe("lines, as far as the calls say them"),
    removed: count,
    firstSeq: seq,
    lastSeq: seq,
  })
  .meta({ id: "changedFile" });

export const fileChangeSchema: z.ZodObject = z
  .looseObject({
    kind: z.literal("fileChange"),
    path: z.string(),
    seq,
    recordId: z.string(),
    callId: z.string().nullable(),
    tool: z.string(),
    what: z.enum(["write", "edit", "patch"]),
    isError: z.boolean().nullable().describe("null: the log has no result of the call"),
    isEverywhere: z.boolean().describe("each place with the text before is replaced, not the first alone"),
    before: z
      .string()
      .nullable()
      .describe("what is replaced: of a write the content that earlier changes give; null: the log does not say it"),
    after: z.string().nullable(),
    patch: z.string().nullable().describe("a unified diff, or the part of `apply_patch` that is about the file"),
  })
  .meta({ id: "fileChange" });

const totals = {
  calls: count,
  seconds: z.number(),
  input: z.number().describe("prompt tokens that no cache served"),
  cacheRead: z.number(),
  cacheWrite: z.number(),
  output: z.number(),
  reasoning: z.number().describe("part of `output`"),
  costUsd: z.number().nullable().describe("of the calls with a known price; null when it is known of none"),
  statedUsd: z.number().describe("the part of `costUsd` that programs stated themselves"),
  unpricedCalls: count,
  doubtfulCalls: count,
};

export const sessionUsageSchema: z.ZodObject = z
  .looseObject({
    kind: z.literal("sessionUsage"),
    ...place,
    turns: z.array(
      z.looseObject({
        seq: seq.nullable().describe("of the prompt; null: calls before the first one"),
        tsMs: atMs.nullable(),
        model: z.string().nullable().describe("of the last call"),
        ...totals,
        firstByteMs: z.number().nullable().describe("from the first request to the first byte of its answer"),
        fillTokens: z.number().nullable().describe("prompt and reply of the last call"),
        isShared: z.boolean().describe("a fork shares the turn with its origin, where its calls count"),
      }),
    ),
    total: z.looseObject(totals).describe("of the turns that are not shared"),
    hasUsage: z.boolean(),
    pricesAsOf: z.string().describe("the day of the prices, YYYY-MM-DD"),
  })
  .meta({ id: "sessionUsage" });
