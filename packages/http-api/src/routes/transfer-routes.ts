import type { Finding, SessionRef, SessionStore } from "@throughline/core";
import { loadExisting, refused, runInSlices, type Steps } from "@throughline/core/internal";
import { withinMemory } from "@throughline/core/internal/node";
import { writableFormatNames } from "@throughline/foreign-formats/internal";
import type { ExportFormat, TranscriptFormat } from "@throughline/transfer/internal";
import { z } from "zod";
import { type Answer, list, type ListAnswer } from "../http/answer.ts";
import { route, type RouteDefinition } from "../http/route.ts";
import { findingSchema } from "../schemas/reading.ts";
import { sessionQuery } from "../schemas/session.ts";
import { listOf, queryFlag, queryInteger } from "../schemas/values.ts";

const linesType = "application/x-ndjson";
const lineFormats = ["jsonl", "openclaw", "pi", "claw0"] as const;
const formats: readonly string[] = [...lineFormats, ...writableFormatNames];
const pageTypes: Readonly<Record<TranscriptFormat, string>> = {
  html: "text/html; charset=utf-8",
  markdown: "text/markdown; charset=utf-8",
};

const pageQuery = {
  level: z.enum(["full", "compact", "words"]).exactOptional().describe("how much a page shows: `compact` without it"),
  redact: z.enum(["on", "off"]).exactOptional().describe("of a page: the search for secrets; `on` without it"),
  pattern: z
    .array(z.string())
    .max(20)
    .exactOptional()
    .describe("of a page: an expression, whose matches are replaced as well; may be repeated"),
  images: queryFlag().exactOptional().describe("of a page: with images"),
  part: queryInteger(1).exactOptional().describe("of a page of more than 5,000 records: the number of the file"),
};

function isPage(format: string): format is TranscriptFormat {
  return format in pageTypes;
}

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
      "A file that breaks off is not whole: the connection is closed without the last chunk. `remarks=true` answers the list of what the format has no place for in the place of the file. `html` and `markdown` are pages for people: secrets of known shapes are replaced, and `remarks=true` counts them by kind and lists the files.",
    scope: "read",
    query: z.strictObject({
      ...sessionQuery,
      to: z.string().exactOptional().describe("a format of `throughline export`; jsonl without it: the exact lines"),
      remarks: queryFlag().exactOptional().describe("what is left out, added or changed, in the place of the file"),
      ...pageQuery,
    }),
    answers: {
      200: {
        description: "The file; with `remarks` the list.",
        schema: listOf(remarkSchema),
        types: ["application/json", linesType, "application/octet-stream", ...Object.values(pageTypes)],
      },
    },
    errors: ["SESSION_NOT_FOUND"],
    handle: async ({ ref, view, query, signal }) => {
      const at = ref();
      const { to = "jsonl", remarks = false, agent: _agent, archive: _archive, ...page } = query;
      const store = view.store(at.agentId);
      if (isPage(to)) return pageAnswer(store, at, { to, remarks, ...page }, signal);
      const [misplaced] = Object.keys(page);
      if (misplaced !== undefined)
        throw refused("INPUT_INVALID", `${misplaced} is for to=html and to=markdown.`, { path: misplaced });
      const { sessionId } = await loadExisting(store, at);
      if (!formats.includes(to))
        throw refused("INPUT_INVALID", `to is none of ${[...Object.keys(pageTypes), ...formats].join(", ")}.`, {
          path: "to",
          formats: [...Object.keys(pageTypes), ...formats],
        });
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

interface PageRequest {
  readonly to: TranscriptFormat;
  readonly remarks: boolean;
  readonly level?: "full" | "compact" | "words";
  readonly redact?: "on" | "off";
  readonly pattern?: readonly string[];
  readonly images?: boolean;
  readonly part?: number;
}

async function pageAnswer(
  store: SessionStore,
  at: SessionRef,
  { to, remarks, level, redact = "on", pattern: patterns = [], images = false, part = 1 }: PageRequest,
  signal: AbortSignal,
): Promise<Answer> {
  const { exportTranscript } = await import("@throughline/transfer");
  const options = { to, redact: redact === "on", patterns, images, signal, ...(level === undefined ? {} : { level }) };
  const { fileNames, records, replaced, file } = await exportTranscript(store, at, options);
  if (remarks) {
    const items = (replaced ?? []).map(({ what: rule, count }) => {
      const reason = `${count} × ${rule} replaced`;
      return JSON.stringify({ kind: "remark", seq: null, id: null, what: "changed", reason, rule, count });
    });
    const files = fileNames.map((name, index) => ({ name, records: records[index] ?? 0 }));
    return list(items, null, { files });
  }
  const name = fileNames[part - 1];
  if (name === undefined)
    throw refused("INPUT_INVALID", `The page has ${fileNames.length} files, and part is ${part}.`, { path: "part" });
  const headers = {
    "content-disposition": `attachment; filename*=UTF-8''${encodeURIComponent(name)}`,
    "content-security-policy": "sandbox",
  };
  return { kind: "text", status: 200, type: pageTypes[to], body: file(part), headers };
}

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
