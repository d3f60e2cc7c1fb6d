import { PassThrough, type Readable, type Writable } from "node:stream";
import type { JSONRPCMessage, RequestId } from "@modelcontextprotocol/server";
import { serveStdio, StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { CallLimits } from "./call-limits.ts";
import { createMemoryServer } from "./create-memory-server.ts";
import type { MemoryScope, MemoryServerOptions } from "./memory-scope.ts";

/** Limits how long requests from before the end of the input may still run. */
const lastAnswersMs = 5000;

export interface StdioOptions extends MemoryServerOptions {
  readonly scope: MemoryScope;
  readonly stdin: Readable;
  /** Receives protocol messages only; any other output would break the client's parser. */
  readonly stdout: Writable;
  readonly signal: AbortSignal;
}

/**
 * Serves one client over two streams until the client closes one or the signal aborts. Requests that arrived before the
 * end of the input are answered.
 */
export async function serveMemoryOverStdio(options: StdioOptions): Promise<void> {
  const { scope, stdin, stdout, signal, onError } = options;
  const host = { options, scope, limits: new CallLimits() };
  const transport = new AnsweringTransport(stdin, stdout);
  const handle = serveStdio(() => createMemoryServer(host), { transport, onerror: onError });
  const stop = (): void => void handle.close().catch(onError);
  if (signal.aborted) stop();
  else signal.addEventListener("abort", stop, { once: true });
  await transport.closed;
  signal.removeEventListener("abort", stop);
  await handle.close();
}

/**
 * The SDK's transport stops at the end of its input without an event. This one answers open requests first and signals
 * the end.
 */
class AnsweringTransport extends StdioServerTransport {
  readonly closed: Promise<void>;
  readonly #onClosed: () => void;
  readonly #source: Readable;
  readonly #input: PassThrough;
  readonly #open = new Set<RequestId>();
  #hasEnded = false;

  constructor(stdin: Readable, stdout: Writable) {
    const input = new PassThrough();
    super(input, stdout);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    this.#onClosed = resolve;
    this.#source = stdin;
    this.#input = input;
  }

  override async start(): Promise<void> {
    const deliver = this.onmessage;
    this.onmessage = (message) => {
      if ("method" in message && "id" in message) this.#open.add(message.id);
      deliver?.(message);
    };
    await super.start();
    this.#source.pipe(this.#input, { end: false });
    for (const event of ["end", "close", "error"]) this.#source.once(event, this.#onEnd);
    if (this.#source.readableEnded || this.#source.destroyed) this.#onEnd();
  }

  override async send(message: JSONRPCMessage): Promise<void> {
    try {
      await super.send(message);
    } finally {
      if (!("method" in message) && message.id !== undefined) this.#open.delete(message.id);
      this.#endWhenAnswered();
    }
  }

  override async close(): Promise<void> {
    for (const event of ["end", "close", "error"]) this.#source.off(event, this.#onEnd);
    this.#source.unpipe(this.#input);
    // An open input would keep the process alive.
    this.#source.pause();
    await super.close();
    this.#onClosed();
  }

  readonly #onEnd = (): void => {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    setTimeout(() => this.#input.end(), lastAnswersMs).unref();
    // The last chunk may still be on its way through the pipe.
    setImmediate(() => this.#endWhenAnswered());
  };

  #endWhenAnswered(): void {
    if (this.#hasEnded && this.#open.size === 0 && this.#input.readableLength === 0) this.#input.end();
  }
}
