import type { Readable } from "node:stream";
import type { FilesFacet } from "@throughline/core";
import { type FileScope, storeFiles } from "@throughline/core/internal";
import { z } from "zod";
import { json, largeJson } from "../http/answer.ts";
import { type ApiRequest, route, type RouteDefinition } from "../http/route.ts";
import { decodeSegment } from "../http/session-segment.ts";
import { queryInteger } from "../schemas/values.ts";

const agent = z.string().exactOptional().describe("the agent of the file; the token's only one, or main, without it");
const bytesType = "application/octet-stream";

const storedSchema = z.looseObject({ id: z.string(), bytes: z.int(), storedAtMs: z.number() });
const fileSchema = z.looseObject({ kind: z.literal("file"), file: storedSchema.nullable() }).meta({ id: "file" });
const listedSchema = z.looseObject({
  id: z.string(),
  bytes: z.int().nullable().describe("null when records refer to the file and the store does not have it"),
  storedAtMs: z.number().nullable(),
  references: z.int().describe("how many records refer to the file"),
});
const filesSchema = z.looseObject({ kind: z.literal("files"), items: z.array(listedSchema) }).meta({ id: "files" });
const deletedSchema = z
  .looseObject({ kind: z.literal("file-deleted"), isDeleted: z.boolean() })
  .meta({ id: "file-deleted" });

export const fileRoutes: readonly RouteDefinition[] = [
  route({
    id: "putFile",
    method: "POST",
    path: "/files",
    summary: "Keeps a file of an agent, under the SHA-256 of its bytes.",
    description:
      "The body is the bytes of the file, whatever its type. They are kept while they arrive, and nobody sees any of them before the answer. The same bytes are kept once for an agent.",
    scope: "write",
    query: z.strictObject({ agent }),
    body: { schema: z.custom<Readable>(), types: [bytesType], isStream: true },
    answers: { 201: { description: "The file is kept.", schema: fileSchema } },
    errors: ["FILE_TOO_LARGE", "CAPABILITY_UNSUPPORTED", "CODEC_FAILED", "MEDIA_TYPE_UNSUPPORTED"],
    handle: async (request) => {
      const { files, scope } = filesOf(request);
      return json(201, { kind: "file", file: await files.put(scope, request.body, { signal: request.signal }) });
    },
  }),
  route({
    id: "listFiles",
    method: "GET",
    path: "/files",
    summary:
      "The files of an agent with how many records refer to each, and the files that records name and the store lacks.",
    scope: "read",
    query: z.strictObject({ agent }),
    answers: { 200: { description: "All files, by id.", schema: filesSchema } },
    errors: ["CAPABILITY_UNSUPPORTED"],
    handle: async (request) => {
      const { files, scope } = filesOf(request);
      const pages = await Array.fromAsync(files.list(scope, { signal: request.signal }));
      return largeJson(200, { kind: "files", items: pages.flat() });
    },
  }),
  route({
    id: "getFileFacts",
    method: "GET",
    path: "/files/{id}/facts",
    summary: "The size and the time of a file; null when there is none.",
    scope: "read",
    query: z.strictObject({ agent }),
    answers: { 200: { description: "The facts, or null.", schema: fileSchema } },
    errors: ["CAPABILITY_UNSUPPORTED"],
    handle: async (request) => {
      const { files, scope, id } = filesOf(request);
      return json(200, { kind: "file", file: await files.stat(scope, id) });
    },
  }),
  route({
    id: "getFile",
    method: "GET",
    path: "/files/{id}",
    summary: "The bytes of a file, or a range of them.",
    scope: "read",
    query: z.strictObject({
      agent,
      from: queryInteger(0).exactOptional().describe("the first byte; 0 without it"),
      to: queryInteger(0).exactOptional().describe("the byte before which the range ends; the end without it"),
    }),
    answers: { 200: { description: "The bytes.", type: bytesType } },
    errors: ["FILE_NOT_FOUND", "CAPABILITY_UNSUPPORTED", "CODEC_FAILED", "STORE_CORRUPT"],
    handle: async (request) => {
      const { files, scope, id } = filesOf(request);
      const { from, to } = request.query;
      const pieces = files.get(scope, id, { from, to, signal: request.signal })[Symbol.asyncIterator]();
      // A file that is not there, and a range outside of it, are refused before the status is sent.
      const first = await pieces.next();
      const headers = { "content-disposition": "attachment" };
      return { kind: "text", status: 200, type: bytesType, headers, body: startingWith(first, pieces) };
    },
  }),
  route({
    id: "deleteFile",
    method: "DELETE",
    path: "/files/{id}",
    summary: "Deletes a file, also when records refer to it.",
    scope: "delete",
    query: z.strictObject({ agent }),
    answers: { 200: { description: "There is no such file now.", schema: deletedSchema } },
    errors: ["CAPABILITY_UNSUPPORTED"],
    handle: async (request) => {
      const { files, scope, id } = filesOf(request);
      return json(200, { kind: "file-deleted", isDeleted: await files.delete(scope, id) });
    },
  }),
];

interface AgentFiles {
  readonly files: FilesFacet;
  readonly scope: FileScope;
  readonly id: string;
}

function filesOf({ view, query, parameters }: ApiRequest<{ readonly agent?: string }>): AgentFiles {
  const agentId = query.agent ?? view.onlyAgent ?? "main";
  const files = storeFiles(view.store(agentId));
  return { files, scope: { namespace: view.namespace, agentId }, id: decodeSegment(parameters["id"] ?? "") };
}

async function* startingWith(
  first: IteratorResult<Uint8Array>,
  rest: AsyncIterator<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  for (let next = first; next.done !== true; next = await rest.next()) yield next.value;
}
