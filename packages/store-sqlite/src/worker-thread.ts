// The thread that owns a store's connection. Started by `createSqliteWorkerStore`; loaded elsewhere, it does nothing.
import { parentPort, workerData, type MessagePort } from "node:worker_threads";
import type { SessionStore } from "@throughline/core";
import { createSqliteStore } from "./sqlite-store.ts";
import type { SqliteStoreOptions } from "./sqlite-store-options.ts";
import { sentError, type WorkerReply, type WorkerRequest } from "./worker-messages.ts";

/** Answers what is asked through the port, over the store it opens. */
class StoreServer {
  readonly #port: MessagePort;
  readonly #store: SessionStore;
  readonly #streams = new Map<number, AsyncIterator<unknown>>();
  readonly #signals = new Map<number, AbortController>();
  /** Requests that are not answered yet. */
  readonly #underWay = new Set<Promise<void>>();

  constructor(port: MessagePort, options: SqliteStoreOptions) {
    this.#port = port;
    this.#store = createSqliteStore({ ...options, onEvent: (event) => this.#send({ kind: "event", event }) });
    port.on("message", (request: WorkerRequest) => {
      if (request.kind === "call" && request.method === "close") return void this.#answerLast(request);
      const answered = this.#answer(request).finally(() => this.#underWay.delete(answered));
      this.#underWay.add(answered);
    });
  }

  #send(reply: WorkerReply): void {
    this.#port.postMessage(reply);
  }

  /** The method, bound to the store or facet it belongs to. */
  #methodOf(name: string): (...args: readonly unknown[]) => unknown {
    const [facet, method] = name.includes(".") ? name.split(".") : [null, name];
    const place: unknown = facet === null ? this.#store : Reflect.get(this.#store, facet as string);
    const owner = place as Readonly<Record<string, unknown>>;
    const found = owner[method as string] as (...args: readonly unknown[]) => unknown;
    return (...args) => found.apply(owner, args as unknown[]);
  }

  /** The arguments, with the signal that stands for the one on the other side. */
  #argumentsOf({ id, args, signalAt }: Extract<WorkerRequest, { kind: "call" | "open" }>): readonly unknown[] {
    if (signalAt === null) return args;
    const controller = new AbortController();
    this.#signals.set(id, controller);
    return args.map((each, at) => (at === signalAt ? { ...(each as object), signal: controller.signal } : each));
  }

  async #handle(request: WorkerRequest): Promise<unknown> {
    const { id } = request;
    if (!("method" in request)) return this.#go(request);
    const made = this.#methodOf(request.method)(...this.#argumentsOf(request));
    if (request.kind === "call") return made;
    this.#streams.set(id, (made as AsyncIterable<unknown>)[Symbol.asyncIterator]());
    return undefined;
  }

  /** A message about a running call or stream. */
  async #go({ kind, id }: Exclude<WorkerRequest, { readonly method: unknown }>): Promise<unknown> {
    const stream = this.#streams.get(id);
    if (kind === "next") return stream?.next();
    if (kind === "abort") return this.#signals.get(id)?.abort();
    this.#streams.delete(id);
    this.#signals.delete(id);
    return stream?.return?.();
  }

  async #answer(request: WorkerRequest): Promise<void> {
    try {
      const value = await this.#handle(request);
      if (request.kind !== "abort") this.#send({ kind: "result", id: request.id, value });
    } catch (error) {
      this.#send({ kind: "error", id: request.id, error: sentError(error) });
    } finally {
      if (request.kind === "call") this.#signals.delete(request.id);
    }
  }

  /** Closes the store and answers last of all: the others that are under way hear that it was closed. Then the thread ends. */
  async #answerLast(request: WorkerRequest): Promise<void> {
    const others = [...this.#underWay];
    try {
      await this.#store.close();
      await Promise.all(others);
      this.#send({ kind: "result", id: request.id, value: undefined });
    } catch (error) {
      this.#send({ kind: "error", id: request.id, error: sentError(error) });
      return;
    }
    // One runtime has no such method on the port of a thread; its thread ends when nothing is left to be done.
    (this.#port as { close?(): void }).close?.();
  }
}

if (parentPort !== null) new StoreServer(parentPort, workerData as SqliteStoreOptions);
