import type { Clock, RandomSource, SessionRef, SessionStore } from "@throughline/core";
import { assertKnownOptions, isFields, optionKinds, type Fields, type OptionTable } from "@throughline/core/internal";
import {
  adapterOptions,
  aiSdkPrompt,
  beforeRun,
  createFrameworkLog,
  firstBatch,
  type FrameworkLog,
  type LiveItemsOptions,
  type LogView,
  promptDrafts,
  promptMessageFor,
  replyDrafts,
  type ReplyFacts,
  replyFactsOf,
  ReplyParts,
  type RunPolicyOptions,
  runPolicyTable,
} from "@throughline/foreign-formats/internal";
import { withSdkErrors } from "./sdk-errors.ts";

/** Configures `throughlineMiddleware`. */
export interface ThroughlineMiddlewareOptions extends RunPolicyOptions {
  /** Holds the store of the session; the caller closes it. */
  readonly store: SessionStore;
  /** Holds the address of the session that records every call; the first call creates it. */
  readonly ref: SessionRef;
  /**
   * Sets the mode. `record` stores the program's prompt and the reply. `guard` sends the history of the log to the
   * model instead, repaired and from its last compaction on. In `guard` the program may send new messages alone.
   * @default "record"
   */
  readonly mode?: "record" | "guard" | undefined;
  /** Is called in `guard` before a prompt is built; compacts the session when that is due. @default nothing compacts */
  readonly compact?: ((ref: SessionRef) => Promise<unknown>) | undefined;
  /** Is called in `guard` for content that a prompt cannot hold. @default none */
  readonly onLoss?: LiveItemsOptions["onLoss"] | undefined;
  /** Sets how long a call may give no sign of life before another call may start, in milliseconds. @default 60_000 */
  readonly leaseMs?: number | undefined;
  /** Names the holder of the session's lock while a model answers, for people. @default "ai-sdk" */
  readonly owner?: string | undefined;
  /** Times the records and leases. @default the system's */
  readonly clock?: Clock | undefined;
  /** Makes the ids of sessions and records. @default the system's */
  readonly random?: RandomSource | undefined;
}

const { callback, filledText, integer, object, objectWith, oneOf, required } = optionKinds;
const table: OptionTable<ThroughlineMiddlewareOptions> = {
  ...runPolicyTable,
  store: required(objectWith("load", "append", "read")),
  ref: required(object),
  mode: oneOf(["record", "guard"]),
  compact: callback,
  onLoss: callback,
  leaseMs: integer({ min: 1 }),
  owner: filledText,
  clock: objectWith("nowMs", "sleep"),
  random: objectWith("uuid"),
};

/** Holds a call that `wrapLanguageModel` passes on, of provider specification 3 or 4. */
interface WrappedCall {
  /** Holds the call's options, with its `prompt`. */
  readonly params: object;
  /** Holds the wrapped model. */
  readonly model: object;
}

/** Fits the `middleware` of `wrapLanguageModel` in versions 6 and 7 of the SDK. */
export interface ThroughlineMiddleware {
  /** States `v4`. Each version of the SDK types another literal here but reads none, so the type is `never`. */
  readonly specificationVersion: never;
  /**
   * Wraps a call without a stream as one turn. The SDK's result has the types of its version, which this package does
   * not depend on.
   * @throws the SDK's AISDKError, with ours as its cause, such as SESSION_BUSY and SEND_DENIED; what the model throws
   */
  readonly wrapGenerate: (call: WrappedCall) => Promise<never>;
  /** Wraps a streamed call as one turn. Tool calls are passed on when the reply is stored. @throws as `wrapGenerate` */
  readonly wrapStream: (call: WrappedCall) => Promise<never>;
}

interface Model {
  readonly specificationVersion: string;
  readonly provider: string;
  readonly modelId: string;
  doGenerate(params: Fields): PromiseLike<Fields>;
  doStream(params: Fields): PromiseLike<Fields & { readonly stream: ReadableStream<Fields> }>;
}

/**
 * Creates a middleware that stores the input and output of a model. New messages are stored before the model is asked,
 * the reply before it is passed on. A call is a turn of the session: other processes get `SESSION_BUSY` meanwhile.
 * @throws {ThroughlineError} INPUT_INVALID
 */
export function throughlineMiddleware(options: ThroughlineMiddlewareOptions): ThroughlineMiddleware {
  assertKnownOptions<ThroughlineMiddlewareOptions>("throughlineMiddleware", options, table);
  const { store, ref, clock, random } = options;
  const ports = { ...(clock === undefined ? {} : { clock }), ...(random === undefined ? {} : { random }) };
  const calls = new RecordedCalls(createFrameworkLog({ store, ref, ...ports }), options);
  return {
    specificationVersion: "v4" as never,
    wrapGenerate: ({ params, model }) => calls.generate(params as Fields, model as Model) as Promise<never>,
    wrapStream: ({ params, model }) => calls.stream(params as Fields, model as Model) as Promise<never>,
  };
}

type Turn = Awaited<ReturnType<FrameworkLog["openTurn"]>>;

class RecordedCalls {
  readonly #log: FrameworkLog;
  readonly #options: ThroughlineMiddlewareOptions;

  constructor(log: FrameworkLog, options: ThroughlineMiddlewareOptions) {
    this.#log = log;
    this.#options = options;
  }

  async generate(params: Fields, model: Model): Promise<Fields> {
    const { turn, sent } = await this.#begin(params, model);
    try {
      const result = await model.doGenerate(sent);
      const content = Array.isArray(result["content"]) ? (result["content"] as readonly unknown[]) : [];
      const response = isFields(result["response"]) ? result["response"] : {};
      await this.#keep(content, replyFactsOf(model, result, response));
      await this.#end(turn, "done");
      return result;
    } catch (error) {
      await this.#end(turn, "failed").catch(() => {});
      throw error;
    }
  }

  async stream(params: Fields, model: Model): Promise<Fields> {
    const { turn, sent } = await this.#begin(params, model);
    try {
      const result = await model.doStream(sent);
      const parts = new ReplyParts();
      const keep = (stopReason: string | null): Promise<void> => {
        const facts = replyFactsOf(model, parts.finish ?? {}, parts.response);
        return this.#keep(parts.content(), stopReason === null ? facts : { ...facts, stopReason });
      };
      const signal = params["abortSignal"] instanceof AbortSignal ? params["abortSignal"] : undefined;
      const end = (state: "done" | "failed" | "aborted"): Promise<void> => this.#end(turn, state);
      return { ...result, stream: recordedStream(result.stream, parts, { keep, end, signal }) };
    } catch (error) {
      await this.#end(turn, "failed").catch(() => {});
      throw error;
    }
  }

  async #begin(params: Fields, model: Model): Promise<{ readonly turn: Turn; readonly sent: Fields }> {
    const { mode = "record", compact, onLoss, leaseMs = 60_000, owner = "ai-sdk", ref } = this.#options;
    const { store, clock, random } = adapterOptions(this.#options);
    const prompt = Array.isArray(params["prompt"]) ? (params["prompt"] as readonly Fields[]) : [];
    return await withSdkErrors(async () => {
      // Tool results continue a run that an earlier user message started, so they start no new one.
      await beforeRun({ store, ref, clock, random, isNew: prompt.at(-1)?.["role"] === "user" }, this.#options);
      if (mode === "guard" && (await this.#log.view()).lastSeq > 0) await compact?.(ref);
      const turn = await this.#log.openTurn({ owner, leaseMs });
      try {
        const view = await this.#keepPrompt(prompt);
        if (mode === "record") return { turn, sent: params };
        const version = model.specificationVersion === "v3" ? 3 : 4;
        const items = aiSdkPrompt(version).items(view, {
          repaired: true,
          ...(onLoss === undefined ? {} : { onLoss }),
        });
        const behind = prompt.findIndex(({ role }) => role !== "system");
        const system = prompt.slice(0, behind < 0 ? prompt.length : behind);
        return {
          turn,
          sent: { ...params, prompt: [...system, ...items.map(({ value }) => promptMessageFor(value, version))] },
        };
      } catch (error) {
        await turn.close("failed").catch(() => {});
        throw error;
      }
    });
  }

  /** The store limits an append, so a longer history takes several. Each one starts from the new end of the log. */
  async #keepPrompt(prompt: readonly unknown[]): Promise<LogView> {
    for (;;) {
      let isWhole = true;
      const view = await this.#log.append((now) => {
        const { drafts } = promptDrafts(now, prompt, this.#log.place(now));
        const batch = firstBatch(drafts, this.#options.store.capabilities.limits);
        isWhole = batch.length === drafts.length;
        return batch.length === 0 ? null : { drafts: batch };
      });
      if (isWhole) return view;
    }
  }

  async #keep(content: readonly unknown[], facts: ReplyFacts): Promise<void> {
    await withSdkErrors(() =>
      this.#log.append((view) => {
        const drafts = replyDrafts(content, facts, this.#log.place(view));
        return drafts.length === 0 ? null : { drafts };
      }),
    );
  }

  #end(turn: Turn, state: "done" | "failed" | "aborted"): Promise<void> {
    return withSdkErrors(() => turn.close(state));
  }
}

interface StreamEnd {
  /** Stores the parts that arrived. */
  readonly keep: (stopReason: string | null) => Promise<void>;
  readonly end: (state: "done" | "failed" | "aborted") => Promise<void>;
  /** Holds the program's signal. A model may continue to stream after an abort. */
  readonly signal: AbortSignal | undefined;
}

/**
 * Passes the parts of a stream on. A tool runs once its call is passed on, so calls wait until the reply is stored. The
 * received parts of a broken or abandoned stream are stored too.
 */
function recordedStream(
  stream: ReadableStream<Fields>,
  parts: ReplyParts,
  { keep, end, signal }: StreamEnd,
): ReadableStream<Fields> {
  const reader = stream.getReader();
  const held: Fields[] = [];
  let isOver = false;
  const breakOff = async (stopReason: "aborted" | "error"): Promise<void> => {
    if (isOver) return;
    isOver = true;
    await keep(stopReason).finally(() => end(stopReason === "aborted" ? "aborted" : "failed"));
  };
  const onAbort = (): void => {
    // A failed write surfaces in the next call, which finds the lease of this turn still held.
    void breakOff("aborted")
      .catch(() => {})
      .then(() => reader.cancel(signal?.reason))
      .catch(() => {});
  };
  signal?.addEventListener("abort", onAbort, { once: true });
  return new ReadableStream<Fields>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) {
          if (parts.finish === null) await breakOff(parts.hasFailed ? "error" : "aborted");
          return controller.close();
        }
        parts.take(value);
        if (value["type"] === "finish") {
          if (isOver) return controller.close();
          isOver = true;
          signal?.removeEventListener("abort", onAbort);
          await keep(null).finally(() => end("done"));
          for (const part of held.splice(0)) controller.enqueue(part);
        }
        if (value["type"] === "tool-call" || (held.length > 0 && value["type"] === "tool-result")) {
          held.push(value);
          // A stream calls `pull` again only after a part was enqueued. There is none yet, so this call continues
          // reading.
          return await this.pull?.(controller);
        }
        controller.enqueue(value);
      } catch (error) {
        await breakOff(isAbort(error) ? "aborted" : "error").catch(() => {});
        controller.error(error);
      }
    },
    async cancel(reason) {
      await breakOff("aborted").finally(() => reader.cancel(reason));
    },
  });
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}
