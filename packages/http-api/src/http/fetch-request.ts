import type { IncomingHttpHeaders } from "node:http";
import { Readable } from "node:stream";
import type { ApiIncoming } from "./exchange.ts";

/** Smaller pieces are copied, because the reader frees their memory, which the host may still use. */
const copiedBytes = 4 * 1024;

/** Reads a `Request` as the routes read a request of Node's own server. */
export class FetchRequest extends Readable implements ApiIncoming {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders = {};
  readonly headersDistinct: NodeJS.Dict<string[]> = {};
  readonly rawHeaders: string[] = [];
  readonly #body: ReadableStream<Uint8Array> | null;
  #reader: ReadableStreamDefaultReader<Uint8Array> | null = null;

  constructor(request: Request) {
    super();
    // A read that fails after the body was refused has no other listener, and would end the process.
    this.on("error", () => {});
    const { host, pathname, search } = new URL(request.url);
    this.method = request.method;
    this.url = `${pathname}${search}`;
    this.#body = request.body;
    for (const [name, value] of request.headers) this.#add(name, value);
    if (this.headers.host !== undefined) return;
    // No server of HTTP/1.1 received this request. Then a body that has a type may come without its length.
    this.#add("host", host);
    const isDeclared = "content-length" in this.headers || "transfer-encoding" in this.headers;
    const hasBody = this.#body !== null && "content-type" in this.headers;
    if (hasBody && !isDeclared) this.#add("transfer-encoding", "chunked");
  }

  override _read(): void {
    if (this.#body === null) return void this.push(null);
    this.#reader ??= this.#body.getReader();
    this.#reader.read().then(
      ({ done, value }) => this.push(done ? null : bytesOf(value)),
      (error: unknown) => this.destroy(error instanceof Error ? error : new Error(String(error))),
    );
  }

  #add(name: string, value: string): void {
    this.headers[name] = value;
    this.headersDistinct[name] = [value];
    this.rawHeaders.push(name, value);
  }
}

function bytesOf(piece: Uint8Array): Buffer {
  if (piece.length < copiedBytes) return Buffer.from(piece);
  return Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
}
