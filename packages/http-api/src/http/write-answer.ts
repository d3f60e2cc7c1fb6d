import { listPieces, type Answer, type HeaderMap } from "./answer.ts";
import type { Problem } from "./problem.ts";
import { createBufferPool } from "./text-buffers.ts";
import type { Reply } from "./exchange.ts";

const everyAnswer: HeaderMap = {
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
};

const jsonType = "application/json";
const linesType = "application/x-ndjson";

export async function writeAnswer(
  response: Reply,
  answer: Answer,
  { requestId, accept = "" }: { readonly requestId: string; readonly accept?: string | undefined },
): Promise<void> {
  const headers = { "throughline-request-id": requestId, ...everyAnswer, ...answer.headers };
  switch (answer.kind) {
    case "json":
      return writeText(response, answer.status, { ...headers, "content-type": jsonType }, answer.text);
    case "list": {
      const isLines = accept.includes(linesType);
      const type = { "content-type": isLines ? linesType : jsonType };
      return writeTexts(response, answer.status ?? 200, { ...headers, ...type }, listPieces(answer, isLines));
    }
    case "text": {
      const all = { ...headers, "content-type": answer.type };
      if (typeof answer.body === "string") return writeText(response, answer.status, all, answer.body);
      response.writeHead(answer.status, all);
      return writePieces(response, answer.body);
    }
    case "empty":
      response.writeHead(answer.status, headers).end();
  }
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

function writeText(response: Reply, status: number, headers: HeaderMap, text: string): void {
  // Encode once, so that the content length is known and a text of many megabytes is not encoded twice.
  const bytes = Buffer.from(text);
  response.writeHead(status, { ...headers, "content-length": String(bytes.length) }).end(bytes);
}

/** Keeps enough buffers that four pages at once need no new one. */
const pool = createBufferPool(32);

function writeTexts(response: Reply, status: number, headers: HeaderMap, texts: Iterable<string>): void {
  const buffers = pool.encode(texts);
  const length = buffers.reduce((bytes, buffer) => bytes + buffer.length, 0);
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
