import { ThroughlineError, type SessionEvent } from "@throughline/core";
import { abortedBefore, refused } from "@throughline/core/internal";
import { Worker } from "node:worker_threads";
import { storeThreadUrl } from "./thread-url.ts";
import { receivedError, type WorkerMethod, type WorkerReply, type WorkerRequest } from "./worker-messages.ts";

/** Calls into the thread of a store. */
export interface WorkerLink {
  call<Value>(method: WorkerMethod, args: readonly unknown[]): Promise<Value>;
  /** Begins with the first item that is asked for, and asks `begin` before that. */
  stream<Item>(method: WorkerMethod, args: readonly unknown[], begin?: () => void): AsyncGenerator<Item, void, void>;
  /** Closes the store and ends the thread. */
  end(): Promise<void>;
}

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** So long a closed store's thread may take to end. */
const patienceMs = 5000;

/** The messages to and from the thread: each request waits for its reply. */
class WorkerPort {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  #failure: ThroughlineError | null = null;
  /** Once the store in the thread is closed, its end is no failure: both may be heard in one turn of the loop. */
  #isClosed = false;
  #closeId: number | null = null;

  constructor(thread: URL, options: object, onEvent: (event: SessionEvent) => void) {
    this.#worker = new Worker(thread, { workerData: options });
    // It keeps the process running only while something is asked of it.
    this.#worker.unref();
    this.#worker.on("message", (reply: WorkerReply) => {
      if (reply.kind === "result" && reply.id === this.#closeId) this.#isClosed = true;
      if (reply.kind === "event") onEvent(reply.event);
      else if (reply.kind === "result") this.#settle(reply.id)?.resolve(reply.value);
      else this.#settle(reply.id)?.reject(receivedError(reply.error));
    });
    this.#worker.on("error", (cause) => this.#fail(cause));
    this.#worker.on("exit", (code) => this.#fail(new Error(`exit code ${code}`)));
  }

  get isEnded(): boolean {
    return this.#failure !== null;
  }

  /**
   * @throws {ThroughlineError} what the store throws; STORE_IO when the thread has ended; RECORD_INVALID for a value
   * that is not data
   */
  post<Value>(request: WorkerRequest): Promise<Value> {
    return new Promise<Value>((resolve, reject) => {
      if (this.#failure !== null) return reject(this.#failure);
      try {
        this.#worker.postMessage(request);
      } catch (cause) {
        return reject(refused("RECORD_INVALID", "What is given cannot be sent to the store's thread.", {}, cause));
      }
      this.#waiting.set(request.id, { resolve: resolve as Waiting["resolve"], reject });
      this.#worker.ref();
    });
  }

  /** Closes the store in the thread. What was asked for before is answered first. */
  close(id: number): Promise<void> {
    this.#closeId = id;
    return this.post({ kind: "call", id, method: "close", args: [], signalAt: null });
  }

  abort(id: number): void {
    this.#worker.postMessage({ kind: "abort", id } satisfies WorkerRequest);
  }

  /**
   * The thread ends by itself once its store is closed: stopped from here, it may be stopped inside the database's code,
   * which takes the process with it. Only one that does not end is stopped.
   */
  async ended(): Promise<void> {
    if (this.#failure !== null) return;
    this.#worker.ref();
    let timer: NodeJS.Timeout | null = null;
    await new Promise<void>((resolve) => {
      this.#worker.once("exit", () => resolve());
      timer = setTimeout(() => void this.#worker.terminate(), patienceMs);
    });
    if (timer !== null) clearTimeout(timer);
  }

  #settle(id: number): Waiting | undefined {
    const found = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (this.#waiting.size === 0) this.#worker.unref();
    return found;
  }

  #fail(cause: unknown): void {
    this.#failure ??= this.#isClosed
      ? refused("STORE_CLOSED", "The store handle was closed.")
      : new ThroughlineError("STORE_IO", "The store's thread has ended.", { outcome: "unknown", cause });
    for (const id of this.#waiting.keys()) this.#settle(id)?.reject(this.#failure);
  }
}

/**
 * Starts the thread of a store.
 * @throws {ThroughlineError} CONFIG_INVALID where its file is not there
 */
export function createWorkerLink(
  threadUrl: string | URL | undefined,
  options: object,
  onEvent: (event: SessionEvent) => void,
): WorkerLink {
  const port = new WorkerPort(storeThreadUrl(threadUrl), options, onEvent);
  let lastId = 0;
  const call = async <Value>(method: WorkerMethod, given: readonly unknown[]): Promise<Value> => {
    const id = ++lastId;
    const { args, signalAt, unwatch } = sendable(port, id, given);
    try {
      return await port.post<Value>({ kind: "call", id, method, args, signalAt });
    } finally {
      unwatch();
    }
  };
  return {
    call,
    stream: async function* <Item>(method: WorkerMethod, given: readonly unknown[], begin?: () => void) {
      begin?.();
      const id = ++lastId;
      const { args, signalAt, unwatch } = sendable(port, id, given);
      try {
        await port.post({ kind: "open", id, method, args, signalAt });
        for (;;) {
          const { done, value } = await port.post<IteratorResult<Item, void>>({ kind: "next", id });
          if (done === true) return;
          yield value;
          begin?.();
        }
      } finally {
        unwatch();
        if (!port.isEnded) await port.post({ kind: "return", id });
      }
    },
    end: async () => {
      await port.close(++lastId);
      await port.ended();
    },
  };
}

interface SendableArguments {
  readonly args: readonly unknown[];
  readonly signalAt: number | null;
  unwatch(): void;
}

/** Takes the signal out of the options, which cannot be sent, and sends its abort instead. */
function sendable(port: WorkerPort, id: number, args: readonly unknown[]): SendableArguments {
  const signalAt = args.findIndex((each) => signalOf(each) !== undefined);
  const signal = signalOf(args[signalAt]);
  if (signal === undefined) return { args, signalAt: null, unwatch: () => undefined };
  if (signal.aborted) throw abortedBefore("the operation began", signal);
  const abort = (): void => port.abort(id);
  signal.addEventListener("abort", abort, { once: true });
  const plain = args.map((each, at) => (at === signalAt ? { ...(each as object), signal: undefined } : each));
  return { args: plain, signalAt, unwatch: () => signal.removeEventListener("abort", abort) };
}

function signalOf(value: unknown): AbortSignal | undefined {
  const signal: unknown =
    typeof value === "object" && value !== null ? (value as { signal?: unknown }).signal : undefined;
  return signal instanceof AbortSignal ? signal : undefined;
}
