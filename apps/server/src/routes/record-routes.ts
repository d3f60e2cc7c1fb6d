import { readWindow } from "@throughline/core";
import type { AppendResult, ReadPayload, SourcedRecord } from "@throughline/core";
import { z } from "zod";
import { list, type ListAnswer } from "../http/answer.ts";
import { present } from "../http/present.ts";
import { route, type RouteDefinition } from "../http/route.ts";
import { appendedSchema, appendSchema, recordSchema } from "../schemas/record.ts";
import { sessionQuery, sessionSchema } from "../schemas/session.ts";
import { listOf, queryInteger, seq } from "../schemas/values.ts";
import { appendOptionsOf, draftOf } from "./append-options.ts";
import { readPageOf } from "./one-session.ts";
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
    .enum(["record", "source", "head"])
    .exactOptional()
    .describe("the record, also the line it came in, or neither; record without it"),
  session: z.string().exactOptional().describe("the id of the session of an earlier page: all pages are of that one"),
});

export const recordRoutes: readonly RouteDefinition[] = [
  route({
    id: "appendRecords",
    method: "POST",
    path: "/sessions/{session}/records",
    summary: "Appends records, all or none.",
    description:
      "With an `idempotency-key` the request may be repeated after a broken connection: the first answer comes again, with `replayed: true`.",
    scope: "write",
    query: z.strictObject(sessionQuery),
    body: { schema: appendSchema },
    headers: {
      "idempotency-key": "1 to 200 visible ASCII characters",
      "throughline-fence": "the fence of the turn that the records belong to",
    },
    answers: { 201: { description: "The acknowledgements, in the order of the drafts.", schema: appendedSchema } },
    errors: [
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
    ],
    handle: async (request) => {
      const { drafts, ...options } = request.body;
      const at = request.ref();
      const result = await request.view
        .store(at.agentId)
        .append(at, drafts.map(draftOf), appendOptionsOf(request, options));
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
        schema: listOf(recordSchema, { lastSeq: seq, sessionId: z.string() }),
      },
    },
    errors: ["SESSION_NOT_FOUND"],
    handle: async ({ ref, view, query, signal }) => {
      const at = ref();
      const { after, before, order, limit = mostPageRecords, payload = "record", session } = query;
      const most = Math.min(limit, mostPageRecords);
      const bounds = present({ afterSeq: after, beforeSeq: before, order, limit: most });
      const options = { ...bounds, payload: readAs(payload), signal };
      const { state, page } = await readPageOf(view.store(at.agentId), at, options, session);
      const items = page === null ? [] : page.records.map((record) => textOf(record as SourcedRecord, payload));
      return list(items, null, { lastSeq: page?.lastSeq ?? state.head.lastSeq, sessionId: state.sessionId });
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

function textOf(record: SourcedRecord, payload: ReadPayload): string {
  if (payload === "head") return bareText(record);
  return payload === "source" ? sourceText(record) : recordText(record);
}

function appendedAnswer({ records, head, revision, durability, replayed }: AppendResult): ListAnswer {
  const items = records.map((record) => JSON.stringify({ kind: "ack", ...record, headId: head.headId, durability }));
  return { ...list(items, null, { head, revision, durability, replayed }), status: 201 };
}
