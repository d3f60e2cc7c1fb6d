import { loadExisting, type RecordHead } from "@throughline/core/internal";
import { z } from "zod";
import { json } from "../http/answer.ts";
import { route, type RouteDefinition } from "../http/route.ts";
import { outlineSchema } from "../schemas/reading.ts";
import { sessionQuery } from "../schemas/session.ts";
import { queryInteger } from "../schemas/values.ts";

const mostRows = 50_000;

export const outlineRoutes: readonly RouteDefinition[] = [
  route({
    id: "getOutline",
    method: "GET",
    path: "/sessions/{session}/outline",
    summary:
      "What records there are, without their content: one column per field, for pages that show a whole session.",
    description: `Names stand in \`names\`, and rows hold their places there. At most ${mostRows} rows; \`nextFromSeq\` is not null when more follow.`,
    scope: "read",
    query: z.strictObject({
      ...sessionQuery,
      fromSeq: queryInteger(1).exactOptional().describe("1 without it"),
      toSeq: queryInteger(1).exactOptional().describe("the newest without it"),
    }),
    answers: { 200: { description: "The columns.", schema: outlineSchema } },
    errors: ["SESSION_NOT_FOUND"],
    handle: async ({ ref, view, query, signal }) => {
      const at = ref();
      const store = view.store(at.agentId);
      const { sessionId, head } = await loadExisting(store, at);
      const { fromSeq = 1, toSeq = head.lastSeq } = query;
      const columns = new Columns();
      const bounds = { afterSeq: fromSeq - 1, beforeSeq: toSeq + 1, limit: mostRows };
      for await (const { records } of store.read(at, { ...bounds, payload: "head", signal }))
        for (const record of records) columns.take(record);
      const { lastSeq } = columns;
      const isMore = columns.rows === mostRows && lastSeq < Math.min(toSeq, head.lastSeq);
      const place = { key: at.key, sessionId, fromSeq, toSeq, lastSeq: head.lastSeq };
      const nextFromSeq = isMore ? lastSeq + 1 : null;
      return json(200, { kind: "outline", ...place, ...columns.json(), nextFromSeq });
    },
  }),
];

/**
 * Encodes records as columns of small numbers, so that a client can load a long session. Names are indexes into a list;
 * times and seqs are differences.
 */
class Columns {
  rows = 0;
  lastSeq = 0;
  readonly #names = {
    type: new Map<string, number>(),
    role: new Map<string, number>(),
    tool: new Map<string, number>(),
  };
  readonly #seqOf = new Map<string, number>();
  readonly #columns: Readonly<Record<string, (number | null)[]>> = {
    seq: [],
    parent: [],
    type: [],
    role: [],
    tool: [],
    side: [],
    bytes: [],
    tsMs: [],
  };
  #tsMs = 0;

  take({ seq, id, parentId, type, role, toolName, side, bytes, tsMs }: RecordHead): void {
    this.#seqOf.set(id, seq);
    const parentSeq = parentId === null ? seq : this.#seqOf.get(parentId);
    this.#put("seq", seq - this.lastSeq);
    this.#put("parent", parentSeq === undefined ? null : seq - parentSeq);
    this.#put("type", place(this.#names.type, type));
    this.#put("role", place(this.#names.role, role));
    this.#put("tool", place(this.#names.tool, toolName));
    this.#put("side", side ? 1 : 0);
    this.#put("bytes", bytes);
    this.#put("tsMs", tsMs === null ? null : tsMs - this.#tsMs);
    this.#tsMs = tsMs ?? this.#tsMs;
    this.lastSeq = seq;
    this.rows += 1;
  }

  json(): Readonly<Record<string, unknown>> {
    const names = Object.fromEntries(Object.entries(this.#names).map(([name, known]) => [name, [...known.keys()]]));
    return { count: this.rows, names, columns: this.#columns };
  }

  #put(column: string, value: number | null): void {
    this.#columns[column]?.push(value);
  }
}

function place(known: Map<string, number>, name: string | null | undefined): number | null {
  if (name === null || name === undefined) return null;
  const found = known.get(name);
  if (found !== undefined) return found;
  known.set(name, known.size);
  return known.size - 1;
}
