import { listPieces, type Answer, type HeaderMap } from "./answer.ts";
import type { Problem } from "./problem.ts";
import { gzipBytes, gzipPieces, leastGzipBytes, takesGzip } from "./gzip.ts";
import { createBufferPool } from "./text-buffers.ts";
import type { Reply } from "./exchange.ts";

const everyAnswer: HeaderMap = {
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
};

const jsonType = "application/json";
const linesType = "application/x-ndjson";

/** Holds what of a request decides how its answer is written. */
interface AnswerRequest {
  readonly requestId: string;
  readonly accept?: string | undefined;
  /** Is the header `accept-encoding`. JSON is packed for a client that takes gzip. */
  readonly acceptEncoding?: string | undefined;
}

export async function writeAnswer(response: Reply, answer: Answer, request: AnswerRequest): Promise<void> {
  const { requestId, accept = "", acceptEncoding } = request;
  const headers = { "throughline-request-id": requestId, ...everyAnswer, ...answer.headers };
  const isPacked = takesGzip(acceptEncoding);
  switch (answer.kind) {
    case "json": {
      const all = { ...varying(headers), "content-type": jsonType };
      return writeText(response, answer.status, all, answer.text, isPacked);
    }
    case "list": {
      const isLines = accept.includes(linesType);
      const all = { ...varying(headers), "content-type": isLines ? linesType : jsonType };
      return writeTexts(response, answer.status ?? 200, all, listPieces(answer, isLines), isPacked);
    }
    case "text": {
      const isJson = answer.type === jsonType;
      const all = { ...(isJson ? varying(headers) : headers), "content-type": answer.type };
      if (typeof answer.body === "string")
        return writeText(response, answer.status, all, answer.body, isJson && isPacked);
      const isPackedHere = isJson && isPacked;
      response.writeHead(answer.status, isPackedHere ? { ...all, ...packedHeaders } : all);
      return writePieces(response, isPackedHere ? gzipPieces(answer.body) : answer.body);
    }
    case "empty":
      response.writeHead(answer.status, headers).end();
  }
}

const packedHeaders: HeaderMap = { "content-encoding": "gzip" };

/** Caches keep the packed answer and the plain one apart. */
function varying(headers: HeaderMap): HeaderMap {
  const { vary } = headers;
  return { ...headers, vary: vary === undefined ? "accept-encoding" : `${vary}, accept-encoding` };
}

/** Writes the whole problem without ending the response, because the caller decides when the connection closes. */
export function writeProblem(response: Reply, { status, body, retryAfterS }: Problem, headers: HeaderMap = {}): void {
  if (response.headersSent) return void response.destroy();
  const text = JSON.stringify(body);
  response
    .writeHead(status, {
      "throughline-request-id": String(body["instance"]),
      ...everyAnswer,
      "content-type": "application/problem+json",
      "content-length": Buffer.byteLength(text),
      ...(retryAfterS === null ? {} : { "retry-after": String(retryAfterS) }),
      ...headers,
    })
    .write(text);
}

async function writeText(
  response: Reply,
  status: number,
  headers: HeaderMap,
  text: string,
  isPacked: boolean,
): Promise<void> {
  // Encode once, so that the content length is known and a text of many megabytes is not encoded twice.
  const bytes = Buffer.from(text);
  if (isPacked && bytes.length >= leastGzipBytes) return writePacked(response, status, headers, bytes);
  response.writeHead(status, { ...headers, "content-length": String(bytes.length) }).end(bytes);
}

async function writePacked(response: Reply, status: number, headers: HeaderMap, bytes: Buffer): Promise<void> {
  const packed = await gzipBytes(bytes);
  if (response.destroyed) return;
  const all = { ...headers, ...packedHeaders, "content-length": String(packed.length) };
  response.writeHead(status, all).end(packed);
}

/** Keeps enough buffers that four pages at once need no new one. */
const pool = createBufferPool(32);

async function writeTexts(
  response: Reply,
  status: number,
  headers: HeaderMap,
  texts: Iterable<string>,
  isPacked: boolean,
): Promise<void> {
  const buffers = pool.encode(texts);
  const length = buffers.reduce((bytes, buffer) => bytes + buffer.length, 0);
  if (isPacked && length >= leastGzipBytes) {
    const whole = Buffer.concat(buffers);
    for (const buffer of buffers) pool.free(buffer);
    return writePacked(response, status, headers, whole);
  }
  response.writeHead(status, { ...headers, "content-length": String(length) });
  for (const buffer of buffers)
    response.write(buffer, (error) => {
      // After a failed write the socket may still hold the buffer, so the pool must not reuse it.
      if (error == null) pool.free(buffer);
    });
  response.end();
}

async function writePieces(response: Reply, pieces: AsyncIterable<string | Uint8Array>): Promise<void> {
  for await (const piece of pieces) {
    if (response.destroyed) return;
    if (!response.write(piece)) await drained(response);
  }
  response.end();
}

/** Also resolves when the response is closed, because no drain event follows then. */
function drained(response: Reply): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off("drain", done).off("close", done).off("error", done);
      resolve();
    };
    response.on("drain", done).on("close", done).on("error", done);
    if (response.destroyed || !response.writableNeedDrain) done();
  });
}
