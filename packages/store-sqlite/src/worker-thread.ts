// The thread that owns a store's connection. Started by `createSqliteWorkerStore`; not to be imported.
import { parentPort, workerData } from "node:worker_threads";
import { createSqliteStore } from "./sqlite-store.ts";
import type { SqliteStoreOptions } from "./sqlite-store-options.ts";
import { sentError, type WorkerReply, type WorkerRequest } from "./worker-messages.ts";

const port = parentPort;
const send = (reply: WorkerReply): void => port?.postMessage(reply);
const store = createSqliteStore({
  ...(workerData as SqliteStoreOptions),
  onEvent: (event) => send({ kind: "event", event }),
});
const streams = new Map<number, AsyncIterator<unknown>>();
const signals = new Map<number, AbortController>();

/** The method, bound to the store or facet it belongs to. */
function methodOf(name: string): (...args: readonly unknown[]) => unknown {
  const [facet, method] = name.includes(".") ? name.split(".") : [null, name];
  const owner = (facet === null ? store : Reflect.get(store, facet as string)) as Readonly<Record<string, unknown>>;
  const found = owner[method as string] as (...args: readonly unknown[]) => unknown;
  return (...args) => found.apply(owner, args as unknown[]);
}

/** The arguments, with the signal that stands for the one on the other side. */
function argumentsOf({ id, args, signalAt }: Extract<WorkerRequest, { kind: "call" | "open" }>): readonly unknown[] {
  if (signalAt === null) return args;
  const controller = new AbortController();
  signals.set(id, controller);
  return args.map((each, at) => (at === signalAt ? { ...(each as object), signal: controller.signal } : each));
}

async function handle(request: WorkerRequest): Promise<unknown> {
  const { id } = request;
  if (!("method" in request)) return go(request);
  const made = methodOf(request.method)(...argumentsOf(request));
  if (request.kind === "call") return made;
  streams.set(id, (made as AsyncIterable<unknown>)[Symbol.asyncIterator]());
  return undefined;
}

/** A message about a running call or stream. */
async function go({ kind, id }: Exclude<WorkerRequest, { readonly method: unknown }>): Promise<unknown> {
  const stream = streams.get(id);
  if (kind === "next") return stream?.next();
  if (kind === "abort") return signals.get(id)?.abort();
  streams.delete(id);
  signals.delete(id);
  return stream?.return?.();
}

async function answer(request: WorkerRequest): Promise<void> {
  try {
    const value = await handle(request);
    if (request.kind !== "abort") send({ kind: "result", id: request.id, value });
  } catch (error) {
    send({ kind: "error", id: request.id, error: sentError(error) });
  } finally {
    if (request.kind === "call") signals.delete(request.id);
  }
}

/** Requests that are not answered yet. */
const underWay = new Set<Promise<void>>();

/** Closes the store and answers last of all: the others that are under way hear that it was closed. Then the thread ends. */
async function answerLast(request: WorkerRequest): Promise<void> {
  const others = [...underWay];
  try {
    await store.close();
    await Promise.all(others);
    send({ kind: "result", id: request.id, value: undefined });
  } catch (error) {
    send({ kind: "error", id: request.id, error: sentError(error) });
    return;
  }
  // One runtime has no such method on the port of a thread; its thread ends when nothing is left to be done.
  (port as { close?(): void } | null)?.close?.();
}

port?.on("message", (request: WorkerRequest) => {
  if (request.kind === "call" && request.method === "close") return void answerLast(request);
  const answered = answer(request).finally(() => underWay.delete(answered));
  underWay.add(answered);
});
