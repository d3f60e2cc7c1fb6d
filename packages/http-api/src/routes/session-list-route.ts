import { createHash } from "node:crypto";
import type { ListQuery } from "@throughline/core";
import { refused, sessionFilter, type SessionRow } from "@throughline/core/internal";
import { z } from "zod";
import type { Answer, ListAnswer } from "../http/answer.ts";
import { present } from "../http/present.ts";
import { type ApiRequest, route, type RouteDefinition } from "../http/route.ts";
import { entryFlag, sessionSchema } from "../schemas/session.ts";
import { atMs, commaList, listOf, queryFlag, queryInteger } from "../schemas/values.ts";
import { firstWords } from "./first-words.ts";
import { sessionJson, sourceAtMs } from "./session-json.ts";
import { mostScanned, sessionPage } from "./session-page.ts";

const findingSchema = z.looseObject({ code: z.string(), severity: z.string(), message: z.string() });
const mostSessions = 1000;
const mostWithWords = 50;

/** Selects sessions by what the list shows of them. The store does not know these filters. */
const filters = {
  q: z
    .string()
    .max(200)
    .exactOptional()
    .describe("words that must all occur in the name, the folder, the program or the key"),
  program: commaList(z.string().min(1))
    .exactOptional()
    .describe("only sessions of these formats, with commas between them; `own` for own sessions"),
  cwd: z.string().min(1).max(4096).exactOptional().describe("only sessions of this folder and of those below it"),
  spawned: queryFlag()
    .exactOptional()
    .describe("false leaves out sessions that another one spawned; true leaves out all others"),
};

const listQuery = z.strictObject({
  agent: z.string().exactOptional().describe("only sessions of this agent"),
  state: z
    .enum(["active", "archived", "any"])
    .exactOptional()
    .describe("active without it; any without it when a source is named"),
  importedFormat: z
    .string()
    .exactOptional()
    .describe("only sessions that were imported from this format, such as `claude-code`; with `importedId`"),
  importedId: z
    .string()
    .exactOptional()
    .describe("only sessions that had this id in their source, in any case; with `importedFormat`"),
  prefix: z.string().exactOptional().describe("only keys that begin with it"),
  sinceMs: queryInteger(0).exactOptional().describe("updated at or after"),
  untilMs: queryInteger(0).exactOptional().describe("updated before"),
  ...filters,
  sort: z.enum(["updated", "key"]).exactOptional().describe("newest first, or by agent and key; updated without it"),
  limit: queryInteger(1)
    .exactOptional()
    .describe("50 without it, at most 1,000, or 50 with `firstWords`; a page ends at 2 MiB as well"),
  cursor: z.string().exactOptional().describe("from the page before, with the same query"),
  firstWords: queryFlag().exactOptional().describe("adds how the first prompt begins"),
  ...entryFlag,
});

export const sessionListRoute: RouteDefinition = route({
  id: "listSessions",
  method: "GET",
  path: "/sessions",
  summary: "Lists sessions, page by page.",
  description: `With \`q\`, \`program\`, \`cwd\` or \`spawned\` a page looks at about ${mostScanned} sessions at most: it may have few items, or none, and a \`nextCursor\`.`,
  scope: "read",
  query: listQuery,
  headers: { "if-none-match": "the ETag of an earlier answer: 304 while the same query has the same answer" },
  answers: {
    200: {
      description: "A page of sessions. Its ETag changes with its content.",
      schema: listOf(sessionSchema, {
        scanned: z.int().min(0).describe("sessions that were looked at for the page"),
        leftOut: z.int().min(0).describe("those among them that `q`, `program`, `cwd` or `spawned` left out"),
        findings: z.array(findingSchema),
        purgedAtMs: atMs
          .nullable()
          .optional()
          .describe(
            "when a session of the named source was purged last, or null; present when a source is named and no prefix is",
          ),
      }),
    },
    304: { description: "The answer is the one with that ETag." },
  },
  errors: ["CURSOR_INVALID", "CODEC_FAILED"],
  handle: listed,
});

async function listed(request: ApiRequest<z.output<typeof listQuery>>): Promise<Answer> {
  const { context, view, query, header, signal } = request;
  const { cursor, entry = false, limit = 50, agent: given, prefix, importedFormat, importedId, ...rest } = query;
  const { q, program, cwd, spawned, firstWords: withWords = false, ...stored } = rest;
  const importedFrom = sourceOf(importedFormat, importedId);
  const agent = given ?? view.onlyAgent ?? undefined;
  const bound = JSON.stringify([view.identity, agent, prefix, stored, importedFrom, q, program, cwd, spawned]);
  const { namespace } = view;
  const store = view.store(agent);
  const page = await sessionPage(store, {
    query: present({ ...stored, namespace, agentId: agent, keyPrefix: prefix, importedFrom, signal }),
    isWanted: filterOf({ q, program, cwd, spawned }),
    limit: Math.min(limit, withWords ? mostWithWords : mostSessions),
    cursor: cursor === undefined ? null : context.cursors.open(cursor, bound),
    text: async (state) => {
      const words = withWords ? { firstWords: await firstWords(store, state.ref, signal) } : {};
      const atMs = await sourceAtMs(state, context.sourceFiles);
      return JSON.stringify({ ...sessionJson(state, entry), ...words, sourceAtMs: atMs });
    },
  });
  const { items, nextCursor, scanned, leftOut, purgedAtMs } = page;
  const sealed = nextCursor === null ? null : context.cursors.seal(nextCursor, bound);
  const members = { scanned, leftOut, findings: context.findingsOf(namespace, agent), ...present({ purgedAtMs }) };
  const tag = tagOf(items, members, sealed);
  const headers = { etag: tag };
  if (header("if-none-match") === tag) return { kind: "empty", status: 304, headers };
  return { kind: "list", items, nextCursor: sealed, members, headers };
}

interface WireFilter {
  readonly q: string | undefined;
  readonly program: readonly string[] | undefined;
  readonly cwd: string | undefined;
  readonly spawned: boolean | undefined;
}

function filterOf({ q, program, cwd, spawned }: WireFilter): ((row: SessionRow) => boolean) | null {
  const filter = present({ words: q, programs: program, folder: cwd, isSpawned: spawned });
  return Object.keys(filter).length === 0 ? null : sessionFilter(filter);
}

/** The tag is weak: the same list may be sent packed, or as lines. */
function tagOf(items: ListAnswer["items"], members: object, nextCursor: string | null): string {
  const hash = createHash("sha256").update(JSON.stringify([members, nextCursor]));
  for (const item of items) hash.update(item).update("\n");
  return `W/"${hash.digest("base64url").slice(0, 22)}"`;
}

/** @throws {ThroughlineError} INPUT_INVALID for a half of a source */
function sourceOf(format: string | undefined, sourceId: string | undefined): ListQuery["importedFrom"] {
  if (format !== undefined && sourceId !== undefined) return { format, sourceId };
  if (format === undefined && sourceId === undefined) return undefined;
  const [given, missing] = format === undefined ? ["importedId", "importedFormat"] : ["importedFormat", "importedId"];
  const message = `The query has "${given}" without "${missing}"; a source needs both.`;
  throw refused("INPUT_INVALID", message, { path: missing });
}
