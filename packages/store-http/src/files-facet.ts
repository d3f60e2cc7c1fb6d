import { createHash } from "node:crypto";
import type { FilesFacet, StoreCapabilities } from "@throughline/core";
import {
  abortedBefore,
  assertAgentId,
  assertNamespace,
  type FileScope,
  type ListedFile,
  refused,
  type StoredFile,
} from "@throughline/core/internal";
import { assertPiece, damagedFile, fileNotFound, fileTooLarge, type HandleLife } from "@throughline/store-kit/internal";
import type { HttpRequest } from "./client/http-client.ts";
import { type Connection, readFailure } from "./connection.ts";

interface FilesOptions {
  readonly connection: Connection;
  readonly capabilities: StoreCapabilities;
  readonly life: HandleLife;
}

/** One request asks for at most this many bytes, so that a broken connection costs no more. */
const rangeBytes = 1024 * 1024;

type WireFile = { readonly file: StoredFile | null };

export function createFilesFacet({ connection, capabilities, life }: FilesOptions): FilesFacet {
  const begin = (scope: FileScope, signal?: AbortSignal): void => {
    life.begin(signal);
    assertNamespace(scope.namespace);
    assertAgentId(scope.agentId);
  };
  return {
    async put(scope, content, { maxBytes = Infinity, signal } = {}) {
      begin(scope, signal);
      const most = Math.min(maxBytes, capabilities.limits.fileBytes ?? Infinity);
      return life.track(() => put(connection, scope, { content, most, signal }));
    },
    async *get(scope, id, { from = 0, to, signal } = {}) {
      begin(scope, signal);
      const file = await statOf(connection, scope, id, signal);
      if (file === null) throw fileNotFound(id);
      const end = to ?? file.bytes;
      const isRange = [from, end].every((at) => Number.isSafeInteger(at) && at >= 0) && from <= end;
      if (!isRange || end > file.bytes)
        throw refused(
          "INPUT_INVALID",
          `The file has ${file.bytes} bytes, so bytes ${from} to ${end} are outside of it.`,
        );
      const hash = from === 0 && end === file.bytes ? createHash("sha256") : null;
      for (let at = from; at < end; at += rangeBytes) {
        life.begin(signal);
        const range = { from: at, to: Math.min(end, at + rangeBytes) };
        const bytes = await life.track(() => readRange(connection, scope, { id, range, signal }));
        hash?.update(bytes);
        yield bytes;
      }
      if (hash !== null && hash.digest("hex") !== id) throw damagedFile(id);
    },
    async stat(scope, id) {
      begin(scope);
      return life.track(() => statOf(connection, scope, id));
    },
    async delete(scope, id) {
      begin(scope);
      const request = { ...fileRequest(scope, id), method: "DELETE" } as const;
      type WireDeleted = { readonly isDeleted: boolean };
      // A repeat finds nothing to delete. What is gone by then was deleted by the first attempt.
      return life.track(async () => {
        const { body, isRepeat } = await connection.write<WireDeleted>(request);
        return body.isDeleted || isRepeat;
      });
    },
    async *list(scope, { signal } = {}) {
      begin(scope, signal);
      const request = { path: "/files", namespace: scope.namespace, query: { agent: scope.agentId } };
      type WireFiles = { readonly items: readonly ListedFile[] };
      const { items } = await life.track(() => connection.read<WireFiles>(request, signal));
      if (items.length > 0) yield items;
    },
  };
}

function fileRequest({ namespace, agentId }: FileScope, id: string, below = ""): HttpRequest {
  // An empty segment, or one of dots, would be another path.
  const segment = /^\.*$/.test(id) ? "none" : encodeURIComponent(id);
  return { path: `/files/${segment}${below}`, namespace, query: { agent: agentId } };
}

async function statOf(
  connection: Connection,
  scope: FileScope,
  id: string,
  signal?: AbortSignal,
): Promise<StoredFile | null> {
  return (await connection.read<WireFile>(fileRequest(scope, id, "/facts"), signal)).file;
}

async function readRange(
  { client }: Connection,
  scope: FileScope,
  {
    id,
    range,
    signal,
  }: {
    readonly id: string;
    readonly range: { readonly from: number; readonly to: number };
    readonly signal: AbortSignal | undefined;
  },
): Promise<Uint8Array> {
  const request = fileRequest(scope, id);
  const query = { ...request.query, ...range };
  try {
    const response = await client.send({ ...request, query, signal });
    return new Uint8Array(await response.arrayBuffer());
  } catch (error) {
    if (signal?.aborted === true) throw abortedBefore("the file was read", signal);
    throw readFailure(error, client.url).error;
  }
}

interface PutContent {
  readonly content: AsyncIterable<Uint8Array>;
  readonly most: number;
  readonly signal: AbortSignal | undefined;
}

/** The content can be read once, so a broken request is not repeated. The caller may put the same bytes again. */
async function put(connection: Connection, scope: FileScope, given: PutContent): Promise<StoredFile> {
  const { client } = connection;
  let failure: { readonly error: unknown } | null = null;
  const stream = ReadableStream.from(
    checked(given, (error) => {
      failure = { error };
    }),
  );
  const { signal } = given;
  try {
    const response = await client.send({
      method: "POST",
      path: "/files",
      namespace: scope.namespace,
      query: { agent: scope.agentId },
      headers: { "content-type": "application/octet-stream" },
      stream,
      signal,
    });
    const { file } = (await response.json()) as WireFile;
    if (file === null) throw refused("INTERNAL", "The server kept no file.");
    return file;
  } catch (error) {
    // The error of the content says more than that of the request that it broke.
    const own = failure as { readonly error: unknown } | null;
    if (own !== null) throw own.error;
    if (signal?.aborted === true) throw abortedBefore("the file was kept", signal);
    throw readFailure(error, client.url).error;
  }
}

async function* checked(
  { content, most, signal }: PutContent,
  fail: (error: unknown) => void,
): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  try {
    for await (const piece of content) {
      assertPiece(piece);
      bytes += piece.byteLength;
      if (bytes > most) throw fileTooLarge(most);
      if (signal?.aborted === true) throw abortedBefore("the file was kept", signal);
      // The connection holds the piece while the sender may use its buffer again.
      yield Uint8Array.from(piece);
    }
    if (signal?.aborted === true) throw abortedBefore("the file was kept", signal);
  } catch (error) {
    fail(error);
    throw error;
  }
}
