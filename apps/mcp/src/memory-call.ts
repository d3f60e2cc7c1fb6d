import type { SessionStore } from "@throughline/core";
import type { MemoryScope, MemoryServerOptions } from "./memory-scope.ts";
import { createMemoryView, type MemoryView } from "./memory-view.ts";
import type { CallLimits } from "./call-limits.ts";
import { CallRefusal } from "./tool-failure.ts";

/** What one call of a tool, or one reading of a resource, works with. */
export interface MemoryCall {
  readonly view: MemoryView;
  readonly scope: MemoryScope;
  /** For the session of the notes, which is beside the view. */
  readonly store: SessionStore;
  readonly options: MemoryServerOptions;
  /** Ends with the client's interest and with the time of the call. */
  readonly signal: AbortSignal;
  /** Whether the time of the call is over. */
  isLate(): boolean;
}

/** The text of a result, and the same for programs where the tool states an output schema. */
export interface CallResult {
  readonly text: string;
  readonly structured?: Readonly<Record<string, unknown>>;
}

/** What a server shares among its calls. */
export interface CallHost {
  readonly options: MemoryServerOptions;
  readonly limits: CallLimits;
  readonly scope: MemoryScope;
}

/** Runs one call within its time and the number of calls at once. */
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
      return work({ view: createMemoryView(store, scope), scope, store, options, signal, isLate });
    });
  } catch (error) {
    if (!isLate() || wanted.aborted) throw error;
    throw new CallRefusal(
      `The store did not answer within ${options.callTimeoutMs / 1000} s. A first search of a large store fills its index: ask again.`,
      { cause: error },
    );
  }
}
