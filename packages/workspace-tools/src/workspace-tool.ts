import { ThroughlineError, type AgentToolResult } from "@throughline/core";
import { refusedResult, WorkspaceToolRefusal } from "./tool-refusal.ts";
import type { WorkspaceFolder } from "./workspace-folder.ts";

/** The queue in which calls find their file, one after the other: so those for one file come to its queue in their order. */
export const locating = "/";

/** What all tools of one workspace share. */
export interface Workspace {
  readonly folder: WorkspaceFolder;
  readonly limits: WorkspaceLimits;
  /** Runs what changes a file after everything else that changes it. */
  inTurn<Result>(key: string, run: () => Promise<Result>): Promise<Result>;
}

/** How much one call may read, write or list. */
interface WorkspaceLimits {
  readonly readBytes: number;
  readonly writeBytes: number;
  readonly listEntries: number;
  readonly listDepth: number;
}

/**
 * Runs a call of which every refusal is an answer to the model. What is left are defects and the end of the turn.
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
