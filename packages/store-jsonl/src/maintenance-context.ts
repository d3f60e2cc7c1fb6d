import type { Finding } from "@throughline/core";
import type { AgentAddress } from "./agent-folder.ts";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import type { SessionRow } from "./session-row.ts";
import type { StoreContext } from "./store-context.ts";
import type { SurveyTarget } from "./transcript-survey.ts";
import { unreadableFinding } from "./transcript-findings.ts";

export interface MaintenanceContext {
  readonly context: StoreContext;
  agents(): readonly AgentSessionFiles[];
  /** Returns an agent that may have no session yet. */
  agentAt(address: AgentAddress): AgentSessionFiles;
  rebuild(agent: AgentSessionFiles): Promise<readonly string[]>;
  /** @throws {ThroughlineError} STORE_CLOSED, ABORTED */
  begin(signal?: AbortSignal): void;
  /** Runs work that `close` waits for. */
  track<T>(work: () => Promise<T>): Promise<T>;
}

/** Converts an unreadable transcript to a finding, because it must not hide the findings of the others. */
export async function* pastUnreadable(
  findings: AsyncGenerator<Finding>,
  place: { readonly path: string; readonly key: string },
): AsyncGenerator<Finding> {
  try {
    yield* findings;
  } catch (error) {
    const finding = unreadableFinding(error, place.path, place.key);
    if (finding === null) throw error;
    yield finding;
  }
}

export function targetOf(
  { context: { files, codec, maxLineBytes }, begin }: MaintenanceContext,
  agent: AgentSessionFiles,
  row: SessionRow,
  path: string,
  isFull: boolean,
  signal: AbortSignal | undefined,
): SurveyTarget {
  const owner = { ref: { ...agent.address, key: row.key }, sessionId: row.sessionId };
  const facts = files.facts(path);
  const acknowledgedSeq = facts === null ? 0 : agent.acknowledgedSeq(row, facts.identity);
  return { files, path, owner, codec, maxLineBytes, acknowledgedSeq, isFull, goOn: () => begin(signal) };
}
