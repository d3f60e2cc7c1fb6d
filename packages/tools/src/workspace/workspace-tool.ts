import { ThroughlineError, type AgentToolResult } from "@throughline/core";
import { refusedResult, WorkspaceToolRefusal } from "./tool-refusal.ts";
import type { Place, WorkspaceFolder } from "./workspace-folder.ts";

export interface Workspace {
  readonly folder: WorkspaceFolder;
  readonly limits: WorkspaceLimits;
  /** Runs changes of the same file one after another, in the order of the calls. */
  change<Result>(path: string, run: (place: Place) => Promise<Result>): Promise<Result>;
  /** Returns the SHA-256 of the bytes that a call may replace; null for no file, undefined for any bytes. */
  expectBefore(callId: string): string | null | undefined;
}

interface WorkspaceLimits {
  readonly readBytes: number;
  readonly writeBytes: number;
  readonly listEntries: number;
  readonly listDepth: number;
}

/**
 * Turns a refusal into an answer to the model. Defects and the end of the turn are rethrown.
 *
 * @throws {ThroughlineError} ABORTED
 */
export async function refusing(signal: AbortSignal, run: () => Promise<AgentToolResult>): Promise<AgentToolResult> {
  assertNotAborted(signal);
  try {
    return await run();
  } catch (error) {
    if (error instanceof WorkspaceToolRefusal) return refusedResult(error);
    throw error;
  }
}

/** @throws {ThroughlineError} ABORTED */
export function assertNotAborted(signal: AbortSignal): void {
  if (signal.aborted) throw new ThroughlineError("ABORTED", "The tool was aborted.", { cause: signal.reason });
}
