import type { Durability, TurnRequest } from "@throughline/core";
import { z } from "zod";
import { headSchema } from "./session.ts";
import { listOf, openObject, queryInteger, seq } from "./values.ts";

const placeOfRecord = {
  seq,
  id: z.string(),
  parentId: z.string().nullable(),
  side: z.boolean().describe("a side record hangs on the head and does not move it"),
  tsMs: z.number().nullable().describe("the time that the record states"),
} as const;

export const recordSchema: z.ZodObject = z
  .looseObject({
    kind: z.literal("record"),
    ...placeOfRecord,
    type: z.string(),
    storedAtMs: z.number().nullable().describe("the server's time of the append"),
    bytes: z.int().min(0).describe("size of its line"),
    crc: z.number().nullable().describe("CRC-32 of the line as it is kept"),
    role: z.string().nullable().exactOptional().describe("with `payload=head`: the role of a message"),
    toolName: z.string().nullable().exactOptional().describe("with `payload=head`: the tool of a tool result"),
    record: openObject.exactOptional(),
    cut: z
      .array(
        z.looseObject({
          block: z.int().min(0).nullable().describe("its place in the content; null: texts beside the content"),
          totalBytes: z.int().min(0).describe("of the whole block in UTF-8; beside the content of the texts cut"),
        }),
      )
      .exactOptional()
      .describe("with `payload=preview`: what is shown in part. `…/records/{id}?block=` has the rest of a block"),
    source: z.string().exactOptional().describe("with `payload=source`: the line it came in"),
    sourceBase64: z.string().exactOptional().describe("in the place of `source` where the line is not text"),
    isSourceCanonical: z.boolean().exactOptional().describe("whether the line itself is the record"),
  })
  .meta({ id: "record" });

const ackSchema: z.ZodObject = z
  .looseObject({
    kind: z.literal("ack"),
    ...placeOfRecord,
    storedAtMs: z.number(),
    headId: z.string().nullable(),
    durability: z.enum(["none", "process", "disk"]),
  })
  .meta({ id: "ack" });

export const appendedSchema: z.ZodObject = listOf(ackSchema, {
  head: headSchema,
  revision: z.int().min(1),
  durability: z.enum(["none", "process", "disk"]),
  replayed: z.boolean().describe("true when an earlier request with the key gave this answer"),
}).meta({ id: "appended" });

const turnRequest: z.ZodType<TurnRequest> = z
  .discriminatedUnion("action", [
    z.strictObject({
      action: z.literal("open"),
      turnId: z.string(),
      owner: z.string(),
      leaseUntilMs: z.number(),
      fence: z.number(),
    }),
    z.strictObject({ action: z.literal("renew"), leaseUntilMs: z.number(), fence: z.number() }),
    z.strictObject({ action: z.enum(["within", "close"]), fence: z.number() }),
  ])
  .describe("as the store's contract has it; programs without our client use POST …/turns");

export interface WireAppendOptions {
  readonly expect?: { readonly head: string | null };
  readonly durability?: Durability;
  readonly entry?: Readonly<Record<string, unknown>>;
  readonly nullFields?: readonly string[];
  readonly windowFromSeq?: number;
  readonly rewindTo?: string | null;
  readonly turn?: TurnRequest;
  readonly idempotencyKey?: string;
  readonly isNewKey?: boolean;
}

export interface WireAppend extends WireAppendOptions {
  readonly drafts: readonly Readonly<Record<string, unknown>>[];
}

const durabilitySchema: z.ZodType<Durability> = z.enum(["none", "process", "disk"]);

const appendMembers = {
  expect: z
    .strictObject({ head: z.string().nullable() })
    .exactOptional()
    .describe("refuses the append unless the head is this record; null: no record yet"),
  durability: durabilitySchema.exactOptional(),
  entry: openObject.exactOptional().describe("fields to set in the entry in the same commit; null removes a field"),
  nullFields: z.array(z.string()).exactOptional().describe("fields of `entry` that are set to null instead"),
  windowFromSeq: z.int().min(0).exactOptional().describe("the oldest record that a context still needs"),
  rewindTo: z
    .string()
    .nullable()
    .exactOptional()
    .describe("moves the head to an earlier record; null: before the first"),
  turn: turnRequest.exactOptional(),
  idempotencyKey: z.string().exactOptional().describe("in the place of the header, for keys that no header takes"),
  isNewKey: z.boolean().exactOptional().describe("the key was made for this request and is sent for the first time"),
} as const;

export const appendSchema: z.ZodType<WireAppend> = z
  .strictObject({
    drafts: z.array(openObject).describe("records without seq; id, parentId and timestamp are filled in"),
    ...appendMembers,
  })
  .meta({ id: "append" });

export interface WireMessages extends WireAppendOptions {
  readonly messages: readonly Readonly<Record<string, unknown>>[];
  readonly usage?: Readonly<Record<string, unknown>>;
  readonly model?: string;
  readonly provider?: string;
}

export const messagesSchema: z.ZodType<WireMessages> = z
  .strictObject({
    messages: z.array(openObject).describe("as the provider's API takes and gives them"),
    usage: openObject.exactOptional().describe("what the provider counted, kept with the newest reply"),
    model: z
      .string()
      .min(1)
      .max(200)
      .exactOptional()
      .describe("that wrote the replies: signed thinking goes to no other"),
    provider: z.string().min(1).max(200).exactOptional().describe("who offers the model; that of the API without it"),
    ...appendMembers,
  })
  .meta({ id: "messages" });

/** Holds the append options as query parameters, for a body of NDJSON that has room for records only. */
export const appendQuery: {
  readonly expect: z.ZodExactOptional<z.ZodString>;
  readonly durability: z.ZodExactOptional<z.ZodType<Durability>>;
  readonly windowFromSeq: z.ZodExactOptional<z.ZodType<number>>;
  readonly rewindTo: z.ZodExactOptional<z.ZodString>;
} = {
  expect: z.string().exactOptional().describe("with NDJSON: the head that the append must find; empty: no record yet"),
  durability: durabilitySchema.exactOptional().describe("with NDJSON"),
  windowFromSeq: queryInteger(0).exactOptional().describe("with NDJSON: the oldest record that a context still needs"),
  rewindTo: z.string().exactOptional().describe("with NDJSON: moves the head; empty: before the first record"),
};
