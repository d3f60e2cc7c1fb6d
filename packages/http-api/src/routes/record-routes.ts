import { createWorkSlices, loadExisting, refused } from "@throughline/core/internal";
import { readWindow } from "@throughline/core";
import type { AppendResult, ErrorCode } from "@throughline/core";
import type { ReadPayload, SourcedRecord } from "@throughline/core/internal";
import { z } from "zod";
import { list, type ListAnswer } from "../http/answer.ts";
import { present } from "../http/present.ts";
import { parseJson, parseLines } from "../http/parse-body.ts";
import { route, type ApiRequest, type RouteDefinition } from "../http/route.ts";
import { decodeSegment } from "../http/session-segment.ts";
import { appendedSchema, appendQuery, appendSchema, recordSchema, type WireAppendOptions } from "../schemas/record.ts";
import { sessionQuery, sessionSchema } from "../schemas/session.ts";
import { listOf, queryInteger, seq } from "../schemas/values.ts";
import { appendOptionsOf, draftOf } from "./append-options.ts";
import type { SessionApiLimits } from "../api-options.ts";
import { chosenRecords } from "./chosen-records.ts";
import { findSame, readPageOf } from "./one-session.ts";
import { previewText } from "./record-preview.ts";
import { bareText, readAs, recordText, sourceText } from "./record-text.ts";
import { sessionJson } from "./session-json.ts";
import { mostPageRecords } from "./store-routes.ts";

const readQuery = z.strictObject({
  ...sessionQuery,
  after: queryInteger(0).exactOptional().describe("only records with a greater seq"),
  before: queryInteger(0).exactOptional().describe("only records with a smaller seq"),
  order: z.enum(["ascending", "descending"]).exactOptional().describe("ascending without it"),
  limit: queryInteger(0).exactOptional().describe("at most 500; a page ends at 2 MiB as well"),
  payload: z
    .enum(["record", "source", "head", "preview"])
    .exactOptional()
    .describe(
      "the record, also the line it came in, or neither; `preview`: each text to 4,096 bytes, thinking to 200 characters, images without data; record without it",
    ),
  session: z.string().exactOptional().describe("the id of the session of an earlier page: all pages are of that one"),
  ids: z
    .string()
    .exactOptional()
    .describe(
      "ids with commas between them, each percent-encoded, at most 200: these records, in the order of the log",
    ),
  role: z.string().max(100).exactOptional().describe("only messages of this role, as the records spell it"),
});

const linesType = "application/x-ndjson";
const appendRecordsQuery = z.strictObject({ ...sessionQuery, ...appendQuery });

export const appendHeaders = {
  "idempotency-key": "1 to 200 visible ASCII characters",
  "throughline-fence": "the fence of the turn that the records belong to",
} as const;

export const appendErrors: readonly ErrorCode[] = [
  "SESSION_NOT_FOUND",
  "SESSION_ARCHIVED",
  "APPEND_CONFLICT",
  "SESSION_BUSY",
  "TURN_FENCED",
  "RECORD_INVALID",
  "RECORD_ID_TAKEN",
  "RECORD_TOO_LARGE",
  "BATCH_TOO_LARGE",
  "IDEMPOTENCY_MISMATCH",
  "IDEMPOTENCY_EXPIRED",
  "CAPABILITY_UNSUPPORTED",
];

export const recordRoutes: readonly RouteDefinition[] = [
  route({
    id: "appendRecords",
    method: "POST",
    path: "/sessions/{session}/records",
    summary: "Appends records, all or none.",
    description:
      "With an `idempotency-key` the request may be repeated after a broken connection: the first answer comes again, with `replayed: true`. The body may also be NDJSON, one draft a line; its options stand in the query.",
    scope: "write",
    query: appendRecordsQuery,
    body: { schema: appendSchema, types: ["application/json", linesType], read: readDrafts },
    headers: appendHeaders,
    answers: { 201: { description: "The acknowledgements, in the order of the drafts.", schema: appendedSchema } },
    errors: appendErrors,
    handle: async (request) => {
      const { drafts, ...options } = request.body;
      const at = request.ref();
      const own = { ...options, ...queryOptions(request) };
      const result = await request.view
        .store(at.agentId)
        .append(at, drafts.map(draftOf), appendOptionsOf(request, own));
      return appendedAnswer(result);
    },
  }),
  route({
    id: "listRecords",
    method: "GET",
    path: "/sessions/{session}/records",
    summary: "A page of records.",
    description: "The line of a record is copied into the answer as it is kept.",
    scope: "read",
    query: readQuery,
    answers: {
      200: {
        description: "The records, and the id of the session that they are of.",
        schema: listOf(recordSchema, {
          lastSeq: seq,
          sessionId: z.string(),
          nextSeq: seq
            .nullable()
            .describe("where the next page begins: its `after`, or its `before` when descending; null: there is none"),
        }),
      },
    },
    errors: ["SESSION_NOT_FOUND", "RECORD_NOT_FOUND"],
    handle: async ({ ref, view, query, signal }) => {
      const at = ref();
      const { after, before, order, limit = mostPageRecords, payload = "record", session, ids, role } = query;
      const store = view.store(at.agentId);
      const most = Math.min(limit, mostPageRecords);
      const bounds = present({ afterSeq: after, beforeSeq: before, order, limit: most });
      const options = { ...bounds, payload: readAs(payload), signal };
      if (ids !== undefined || role !== undefined) {
        if (ids !== undefined && (after ?? before ?? order ?? role ?? query.limit) !== undefined)
          throw refused("INPUT_INVALID", "ids names every record; it goes with payload and session only.");
        const state = session === undefined ? await loadExisting(store, at) : await findSame(store, at, session);
        const asked = ids === undefined ? { role: role ?? "", ...options } : { ids: idsOf(ids), ...options };
        const { records, nextSeq } = await chosenRecords(store, state.ref, asked);
        const { lastSeq } = state.head;
        // The cast is safe: the page was read with the payload that the query names.
        const items = await itemsOf(records as readonly SourcedRecord[], payload);
        return list(items, null, { lastSeq, sessionId: state.sessionId, nextSeq });
      }
      const { state, page } = await readPageOf(store, at, options, session);
      const records = (page?.records ?? []) as readonly SourcedRecord[];
      const lastSeq = page?.lastSeq ?? state.head.lastSeq;
      const reached = records.at(-1)?.seq ?? null;
      const isEnd =
        reached === null ||
        reached === (order === "descending" ? (after ?? 0) + 1 : Math.min(lastSeq, (before ?? Infinity) - 1));
      const nextSeq = isEnd ? null : reached;
      return list(await itemsOf(records, payload), null, { lastSeq, sessionId: state.sessionId, nextSeq });
    },
  }),
  route({
    id: "getWindow",
    method: "GET",
    path: "/sessions/{session}/window",
    summary: "The records that a context needs, and the session's state, of one moment.",
    scope: "read",
    query: z.strictObject(sessionQuery),
    answers: {
      200: {
        description: "The first page of the window. `nextAfter` is not null when more follows.",
        schema: listOf(recordSchema, {
          session: sessionSchema,
          nextAfter: seq.nullable().describe("read on from there with `after`, up to `session.head.lastSeq`"),
        }),
      },
    },
    errors: ["SESSION_NOT_FOUND"],
    handle: async ({ ref, view, context, signal }) => {
      const at = ref();
      const store = view.store(at.agentId);
      const { state, records } = await readWindow(store, at, { signal });
      const { pageBytes } = context.store.capabilities.limits;
      const items: string[] = [];
      let bytes = 0;
      for (const record of records) {
        const { kind: _kind, ...stored } = { kind: "record", ...record };
        items.push(JSON.stringify({ kind: "record", ...stored }));
        bytes += record.bytes;
        if (bytes >= pageBytes || items.length >= mostPageRecords) break;
      }
      const last = records[items.length - 1];
      const nextAfter = items.length < records.length && last !== undefined ? last.seq : null;
      return list(items, null, { session: sessionJson(state, true), nextAfter });
    },
  }),
];

function readDrafts(bytes: Buffer, type: string, limits: SessionApiLimits): unknown {
  if (type !== linesType) return parseJson(bytes);
  return { drafts: parseLines(bytes, limits) };
}

/** @throws {ThroughlineError} INPUT_INVALID for options in the query beside a body of JSON, which has them itself */
function queryOptions({
  query,
  bodyType,
}: Pick<ApiRequest<z.output<typeof appendRecordsQuery>>, "query" | "bodyType">): WireAppendOptions {
  const { expect, durability, windowFromSeq, rewindTo } = query;
  const options = present({
    expect: expect === undefined ? undefined : { head: expect === "" ? null : expect },
    durability,
    windowFromSeq,
    rewindTo: rewindTo === "" ? null : rewindTo,
  });
  if (bodyType !== linesType && Object.keys(options).length > 0)
    throw refused(
      "INPUT_INVALID",
      "Options stand in the query of a body in NDJSON only; a body of JSON has them itself.",
    );
  return options;
}

const mostIds = 200;

function idsOf(text: string): readonly string[] {
  const ids = text.split(",").map(decodeSegment);
  if (ids.length <= mostIds) return ids;
  throw refused("INPUT_INVALID", `At most ${mostIds} records can be named at once.`, { most: mostIds });
}

type Payload = ReadPayload | "preview";

async function itemsOf(records: readonly SourcedRecord[], payload: Payload): Promise<readonly string[]> {
  const slices = createWorkSlices();
  const items: string[] = [];
  for (const record of records) {
    items.push(textOf(record, payload));
    await slices.next();
  }
  return items;
}

function textOf(record: SourcedRecord, payload: Payload): string {
  if (payload === "head") return bareText(record);
  if (payload === "preview") return previewText(record);
  return payload === "source" ? sourceText(record) : recordText(record);
}

export function appendedAnswer({ records, head, revision, durability, replayed }: AppendResult): ListAnswer {
  const items = records.map((record) => JSON.stringify({ kind: "ack", ...record, headId: head.headId, durability }));
  return { ...list(items, null, { head, revision, durability, replayed }), status: 201 };
}
