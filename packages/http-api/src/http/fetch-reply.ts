import { Writable } from "node:stream";
import type { Reply } from "./exchange.ts";

/** Limits the bytes that wait in the body of a `Response`, beside those that wait here. */
const bodyBytes = 16 * 1024;

/** These statuses have no body. */
const bodyless: ReadonlySet<number> = new Set([204, 304]);

/** Turns what the routes write into a `Response`, whose body they write no faster than the host reads it. */
export class FetchReply extends Writable implements Reply {
  statusCode = 200;
  /** Resolves with the first byte of the body, or at the end of an answer without one. */
  readonly answered: Promise<Response>;
  readonly #isHead: boolean;
  #headers: Readonly<Record<string, string | number>> | null = null;
  #answer: (response: Response) => void = () => {};
  #body: ReadableStreamDefaultController<Uint8Array> | null = null;
  #isAnswered = false;
  /** Continues the writes once the host reads on. */
  #readOn: (() => void) | null = null;
  #mostWaitMs = Infinity;
  #late: NodeJS.Timeout | undefined;

  constructor(method: string) {
    super();
    this.#isHead = method === "HEAD";
    this.answered = new Promise((resolve) => (this.#answer = resolve));
  }

  get headersSent(): boolean {
    return this.#headers !== null;
  }

  writeHead(status: number, headers: Readonly<Record<string, string | number>>): this {
    this.statusCode = status;
    this.#headers = headers;
    return this;
  }

  flushHeaders(): void {
    this.#begin();
  }

  setTimeout(ms: number): this {
    this.#mostWaitMs = ms;
    return this;
  }

  override end(...given: readonly unknown[]): this {
    const [last] = given;
    const isWhole = !this.#isAnswered && !this.destroyed && this.writableLength === 0;
    if (isWhole && (last === undefined || Buffer.isBuffer(last))) {
      this.#respond(last === undefined || this.#isHead ? null : (last as Buffer<ArrayBuffer>));
      return super.end();
    }
    return Reflect.apply(super.end.bind(this), this, given) as this;
  }

  override _write(piece: Buffer, _encoding: string, written: () => void): void {
    const body = this.#begin();
    if (body === null) return written();
    // The writer may use its memory again once the piece is written, and the host may keep what it reads.
    body.enqueue(new Uint8Array(piece));
    if ((body.desiredSize ?? 0) > 0) return written();
    this.#readOn = written;
    if (Number.isFinite(this.#mostWaitMs)) this.#late = setTimeout(() => this.destroy(), this.#mostWaitMs).unref();
  }

  override _final(ended: () => void): void {
    this.#body?.close();
    this.#body = null;
    ended();
  }

  override _destroy(error: Error | null, destroyed: (error: Error | null) => void): void {
    clearTimeout(this.#late);
    if (!this.#isAnswered) {
      this.statusCode = 500;
      this.#headers = {};
      this.#respond(null);
    }
    this.#body?.error(error ?? cutOff());
    this.#body = null;
    destroyed(error);
  }

  /** Answers with a body that follows; null for an answer that has none. */
  #begin(): ReadableStreamDefaultController<Uint8Array> | null {
    if (this.#isAnswered) return this.#body;
    if (this.#isHead) {
      this.#respond(null);
      return null;
    }
    const body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => void (this.#body = controller),
        pull: () => this.#pulled(),
        cancel: () => void this.destroy(),
      },
      new ByteLengthQueuingStrategy({ highWaterMark: bodyBytes }),
    );
    this.#respond(body);
    return this.#body;
  }

  #pulled(): void {
    clearTimeout(this.#late);
    const readOn = this.#readOn;
    this.#readOn = null;
    readOn?.();
  }

  #respond(body: ReadableStream<Uint8Array> | Uint8Array<ArrayBuffer> | null): void {
    if (this.#isAnswered) return;
    this.#isAnswered = true;
    const headers: Record<string, string> = {};
    for (const [name, value] of Object.entries(this.#headers ?? {})) headers[name] = String(value);
    const status = this.statusCode;
    this.#answer(new Response(bodyless.has(status) ? null : body, { status, headers }));
  }
}

/** Is Node's code for a stream that ends too early, by which hosts know it from a failure of their own. */
const endsTooEarly = "ERR_STREAM_PREMATURE_CLOSE";

function cutOff(): Error {
  return Object.assign(new Error("The answer was ended before it was whole."), { code: endsTooEarly });
}
