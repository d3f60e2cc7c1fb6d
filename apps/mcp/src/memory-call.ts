import type { SessionStore } from "@throughline/core";
import type { MemoryScope, MemoryServerOptions } from "./memory-scope.ts";
import { createMemoryView, type MemoryView } from "./memory-view.ts";
import type { CallLimits } from "./call-limits.ts";
import { CallRefusal } from "./tool-failure.ts";

export interface MemoryCall {
  readonly view: MemoryView;
  readonly scope: MemoryScope;
  /** Holds the notes' session, which is outside the view. */
  readonly store: SessionStore;
  readonly options: MemoryServerOptions;
  /** Aborts when the client cancels or the call times out. */
  readonly signal: AbortSignal;
  isLate(): boolean;
}

/** `structured` holds the same data for programs; it is set if the tool has an output schema. */
export interface CallResult {
  readonly text: string;
  readonly structured?: Readonly<Record<string, unknown>>;
}

export interface CallHost {
  readonly options: MemoryServerOptions;
  readonly limits: CallLimits;
  readonly scope: MemoryScope;
}

export async function inCall<Result>(
  { options, limits, scope }: CallHost,
  wanted: AbortSignal,
  work: (call: MemoryCall) => Promise<Result>,
): Promise<Result> {
  const late = AbortSignal.timeout(options.callTimeoutMs);
  const signal = AbortSignal.any([wanted, late]);
  const isLate = (): boolean => late.aborted;
  try {
    return await limits.run(signal, async () => {
      const store = await options.openStore("read");
      const { meaningOf, onError } = options;
      const meaning = meaningOf === undefined ? null : { meaningOf, onError };
      return work({ view: createMemoryView(store, scope, meaning), scope, store, options, signal, isLate });
    });
  } catch (error) {
    if (!isLate() || wanted.aborted) throw error;
    throw new CallRefusal(
      `The store did not answer within ${options.callTimeoutMs / 1000} s. A first search of a large store fills its index: ask again.`,
      { cause: error },
    );
  }
}
