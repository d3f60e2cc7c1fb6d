import { ThroughlineError, type AgentToolResult } from "@throughline/core";
import { refusedResult, WorkspaceToolRefusal } from "./tool-refusal.ts";
import type { Place, WorkspaceFolder } from "./workspace-folder.ts";

/** What all tools of one workspace share. */
export interface Workspace {
  readonly folder: WorkspaceFolder;
  readonly limits: WorkspaceLimits;
  /** Finds a file, and runs what changes it after everything else that was asked to change it before. */
  change<Result>(path: string, run: (place: Place) => Promise<Result>): Promise<Result>;
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
