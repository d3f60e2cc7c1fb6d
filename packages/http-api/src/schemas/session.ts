import { maxEntryBytes } from "@throughline/core/internal";
import { z } from "zod";
import { atMs, openObject, queryFlag, seq } from "./values.ts";

const turnSchema: z.ZodObject = z
  .looseObject({
    turnId: z.string(),
    owner: z.string(),
    leaseUntilMs: z.number().describe("when another turn may begin although this one was not closed"),
    fence: seq,
  })
  .meta({ id: "turn" });

export const headSchema: z.ZodObject = z
  .looseObject({
    sessionId: z.string(),
    lastSeq: seq.describe("of the newest record; 0 in an empty session"),
    headId: z.string().nullable().describe("the last main record, or where a rewind put the head"),
    windowSeq: seq.nullable().describe("the first record that a context needs; null: all"),
    fence: seq.describe("the number of the newest turn"),
    turn: turnSchema.nullable().describe("the turn that is open"),
  })
  .meta({ id: "head" });

export const sessionSchema: z.ZodObject = z
  .looseObject({
    kind: z.literal("session"),
    namespace: z.string(),
    agentId: z.string(),
    key: z.string(),
    sessionId: z.string(),
    label: z.string().nullable(),
    title: z.string().nullable().describe("the name made from the conversation"),
    titleBy: z.string().nullable().describe("who made the title: rules, model, or import"),
    name: z.string().describe("what lists show: the label, else the title, else the last part of the key"),
    program: z
      .string()
      .nullable()
      .describe(
        "the format it was imported from, or the program that spoke through the gateway; null for an own session",
      ),
    cwd: z.string().nullable().describe("the folder it works in"),
    forkedFrom: z.string().nullable().describe("the id of the session it is a fork of"),
    forkOrigin: z
      .looseObject({
        agentId: z.string().nullable(),
        key: z.string().nullable().describe("the key that it had when the fork was made"),
        sessionId: z.string(),
        atSeq: seq.nullable().describe("the last record that the fork shares"),
      })
      .nullable()
      .describe("where a fork begins; null for a session that is none"),
    spawnedBy: z.string().nullable().describe("the key of the session that spawned it"),
    state: z.enum(["active", "archived"]),
    archiveId: z.string().nullable(),
    recordCount: seq,
    messageCount: seq,
    contextTokens: z.number().nullable(),
    windowTokens: z.number().nullable(),
    contextPercent: z.number().nullable(),
    model: z.string().nullable(),
    createdAtMs: atMs,
    updatedAtMs: atMs,
    incomplete: z.enum(["copy", "fork", "import"]).nullable(),
    pendingApprovals: z.int().min(0).describe("tool calls that wait for a decision"),
    spend: z
      .strictObject({
        calls: z.int().min(0),
        input: z.number(),
        output: z.number(),
        cacheRead: z.number(),
        cacheWrite: z.number(),
        cacheWrite1h: z.number().describe("part of `cacheWrite`"),
        reasoning: z.number().describe("part of `output`"),
        costUsd: z.number().nullable().describe("null as soon as the price of one call is unknown"),
      })
      .nullable()
      .describe("tokens and cost of the calls that turns made; null without any"),
    firstWords: z
      .string()
      .nullable()
      .exactOptional()
      .describe(
        "with `firstWords=true`: the first 120 characters of its first prompt, and `…` where more follows; null without one",
      ),
    sourceAtMs: atMs
      .nullable()
      .exactOptional()
      .describe(
        "when the file it was imported from was last written; null where none is seen, as under `throughline serve`",
      ),
    revision: z.int().min(1).describe("of the entry"),
    head: headSchema,
    entry: openObject.exactOptional().describe("with `entry=true`"),
  })
  .meta({ id: "session" });

export const sessionQuery: {
  readonly agent: z.ZodExactOptional<z.ZodString>;
  readonly archive: z.ZodExactOptional<z.ZodString>;
} = {
  agent: z.string().exactOptional().describe("the agent; without it the one that the key names, else main"),
  archive: z.string().exactOptional().describe("the archive id of an archived session of the key"),
};

export const entryFlag: { readonly entry: z.ZodExactOptional<z.ZodType<boolean>> } = {
  entry: queryFlag().exactOptional().describe("adds the entry to the session"),
};

/**
 * Limits a request to the largest entry plus its other members. An entry with more values would exceed the member
 * limit.
 */
export const mostOfEntry: { readonly bytes: number; readonly values: number } = {
  bytes: maxEntryBytes + 64 * 1024,
  values: 100_000,
};
