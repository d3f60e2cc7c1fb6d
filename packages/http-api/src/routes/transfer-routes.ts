import type { Finding, SessionRef, SessionStore } from "@throughline/core";
import { loadExisting, refused, runInSlices, type Steps } from "@throughline/core/internal";
import { withinMemory } from "@throughline/core/internal/node";
import { writableFormatNames } from "@throughline/foreign-formats/internal";
import type { ExportFormat } from "@throughline/transfer/internal";
import { z } from "zod";
import { list, type ListAnswer } from "../http/answer.ts";
import { route, type RouteDefinition } from "../http/route.ts";
import { findingSchema } from "../schemas/reading.ts";
import { sessionQuery } from "../schemas/session.ts";
import { listOf, queryFlag } from "../schemas/values.ts";

const linesType = "application/x-ndjson";
const lineFormats = ["jsonl", "openclaw", "pi", "claw0"] as const;
const formats: readonly string[] = [...lineFormats, ...writableFormatNames];
/** This version cannot write these formats, so it refuses them with CAPABILITY_UNSUPPORTED. */
const pageFormats: readonly string[] = ["markdown", "html"];

const remarkSchema = z
  .looseObject({
    kind: z.literal("remark"),
    seq: z.number().nullable(),
    id: z.string().nullable(),
    what: z.enum(["left-out", "added", "changed"]),
    reason: z.string(),
  })
  .meta({ id: "remark" });

export const transferRoutes: readonly RouteDefinition[] = [
  route({
    id: "exportSession",
    method: "GET",
    path: "/sessions/{session}/export",
    summary: "A session as a file of this or another program.",
    description:
      "A file that breaks off is not whole: the connection is closed without the last chunk. `remarks=true` answers the list of what the format has no place for in the place of the file. Markdown and HTML are not made by this version.",
    scope: "read",
    query: z.strictObject({
      ...sessionQuery,
      to: z.string().exactOptional().describe("a format of `throughline export`; jsonl without it: the exact lines"),
      remarks: queryFlag().exactOptional().describe("what is left out, added or changed, in the place of the file"),
      level: z.string().exactOptional().describe("of markdown and html"),
      redact: z.string().exactOptional().describe("of markdown and html"),
    }),
    answers: {
      200: {
        description: "The file; with `remarks` the list.",
        schema: listOf(remarkSchema),
        types: ["application/json", linesType, "application/octet-stream"],
      },
    },
    errors: ["SESSION_NOT_FOUND", "CAPABILITY_UNSUPPORTED"],
    handle: async ({ ref, view, query, signal }) => {
      const at = ref();
      const { to = "jsonl", remarks = false, level, redact } = query;
      if (pageFormats.includes(to) || level !== undefined || redact !== undefined)
        throw refused("CAPABILITY_UNSUPPORTED", "This version makes no Markdown and no HTML.", { to });
      const store = view.store(at.agentId);
      const { sessionId } = await loadExisting(store, at);
      if (!formats.includes(to))
        throw refused("INPUT_INVALID", `to is none of ${formats.join(", ")}.`, { path: "to", formats });
      const format = to as ExportFormat;
      if (remarks) return remarksOf(store, at, format, signal);
      const { exportSession } = await import("@throughline/transfer");
      const isOfLines = (lineFormats as readonly string[]).includes(to);
      const [type, ending] = isOfLines ? [linesType, "jsonl"] : ["application/octet-stream", to];
      const headers = { "content-disposition": `attachment; filename="${sessionId}.${ending}"` };
      return { kind: "text", status: 200, type, body: exportSession(store, at, { to: format, signal }), headers };
    },
  }),
  route({
    id: "listFindings",
    method: "GET",
    path: "/sessions/{session}/findings",
    summary: "What is odd in a session: damage, gaps, and records that no provider would take.",
    scope: "read",
    query: z.strictObject(sessionQuery),
    answers: { 200: { description: "The findings.", schema: listOf(findingSchema) } },
    errors: ["SESSION_NOT_FOUND", "MEMORY_SHORT"],
    handle: async ({ context, ref, view, signal }) => {
      const at = ref();
      const store = view.store(at.agentId);
      const state = await loadExisting(store, at);
      const { inspectSession } = await import("@throughline/transfer/internal");
      const found = await inspectSession(withinMemory(store), state, signal);
      const noticed = context.findingsOf(at.namespace, at.agentId).filter(({ key }) => key === at.key);
      return list(await runInSlices(findingItems([...noticed, ...found])));
    },
  }),
];

function* findingItems(findings: readonly Finding[]): Steps<readonly string[]> {
  const items: string[] = [];
  for (const finding of findings) {
    items.push(JSON.stringify({ kind: "finding", ...finding }));
    yield;
  }
  return items;
}

async function remarksOf(
  store: SessionStore,
  at: SessionRef,
  to: ExportFormat,
  signal: AbortSignal,
): Promise<ListAnswer> {
  const items: string[] = [];
  const { exportSession } = await import("@throughline/transfer");
  const onRemark = (remark: object): void => void items.push(JSON.stringify({ kind: "remark", ...remark }));
  for await (const _piece of exportSession(store, at, { to, signal, onRemark }));
  return list(items);
}
