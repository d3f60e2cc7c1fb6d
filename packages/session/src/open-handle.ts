import type { SessionRef } from "@throughline/core";
import { type CompactionTokens, SessionLog, targetOf } from "./session-log.ts";
import type { SessionsOptions } from "./session-options.ts";
import type { SharedParts } from "./shared-parts.ts";
import type { WindowLogOptions } from "./window-log.ts";

export interface OpenParts {
  readonly options: SessionsOptions;
  readonly shared: SharedParts;
  readonly compactionTokens: CompactionTokens;
  readonly onClose: () => void;
}

type LogListener = Pick<WindowLogOptions, "onReplaced" | "onRecord">;

/** Reads the window of an existing session and creates its handle. */
export async function openHandle<Handle extends LogListener>(
  ref: SessionRef,
  parts: OpenParts,
  createHandle: (parts: OpenParts, log: SessionLog) => Handle,
  signal?: AbortSignal,
): Promise<Handle> {
  let handle: Handle | null = null;
  const listener: LogListener = {
    onReplaced: (replacement) => handle?.onReplaced(replacement),
    onRecord: (stored) => handle?.onRecord(stored),
  };
  handle = createHandle(parts, await loadLog(ref, parts, listener, signal));
  return handle;
}

/** Reads the window of an existing session. @throws {ThroughlineError} SESSION_NOT_FOUND */
export function loadLog(
  ref: SessionRef,
  { options, shared, compactionTokens }: Omit<OpenParts, "onClose">,
  listener: LogListener,
  signal?: AbortSignal,
): Promise<SessionLog> {
  const { store, model, redactBeforeAppend: redact = null } = options;
  const { random, fileCache } = shared;
  return SessionLog.load(
    { store, ref, target: targetOf(model), compactionTokens, fileCache, redact, random, ...listener },
    signal,
  );
}
