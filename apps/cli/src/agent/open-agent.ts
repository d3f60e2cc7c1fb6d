import { join } from "node:path";
import type { SessionSettings } from "@throughline/config/internal";
import type { SessionStore, AgentTool } from "@throughline/core";

import { createAgentSessions } from "@throughline/session/whole-turn";
import type { WholeTurnListener } from "@throughline/session/internal";
import type { AgentSessions, AgentSessionsOptions } from "@throughline/session/whole-turn";
import type { SummarizerBreakers } from "@throughline/summarizer-providers/internal";
import type { ChosenModel } from "../chat/choose-model.ts";
import { openBreakers } from "./breaker-file.ts";
import { summaryModels } from "./summary-models.ts";

export interface AgentParts {
  readonly store: SessionStore;
  readonly system: string | null;
  readonly tools: readonly AgentTool[];
  readonly workspaceRoot: string | null;
  readonly settings: SessionSettings;
  readonly breakers: SummarizerBreakers;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly onEvent: WholeTurnListener;
  readonly onSummarizerFailed: (name: string, cause: unknown) => void;
  /** Receives a sentence for each named model that is left out, with its replacement. */
  readonly onNote: (message: string) => void;
}

export function openAgent(parts: AgentParts, chosen: ChosenModel): AgentSessions {
  const { store, system, tools, settings, breakers, environment, onEvent, onSummarizerFailed, onNote } = parts;
  const { summarizers, extractive, writers, notes } = summaryModels({
    settings,
    chosen,
    breakers,
    environment,
    onFailed: onSummarizerFailed,
  });
  for (const note of notes) onNote(note);
  const { compaction, checkpoint, retry, turn, maxOutputTokens, sendPolicy, reset } = settings;
  const memorySearch = tools.find(({ definition }) => definition.name === "memory_search");
  return createAgentSessions({
    store,
    ...turn,
    sendPolicy,
    reset,
    results: settings.results,
    model: { ...chosen.model, maxOutputTokens },
    system,
    tools,
    summarizers,
    extractive,
    breakers,
    compaction: { ...(memorySearch === undefined ? {} : { memorySearchTool: "memory_search" }), ...compaction },
    checkpoint: checkpointsBy(checkpoint, writers),
    memoryFlush: flushSettings(parts),
    // Without a model the rules always write the summary, so a retry could not improve it.
    retry: summarizers.length === 0 ? { ...retry, intervalSeconds: 0 } : retry,
    onEvent,
  });
}

/** Existing checkpoints stay usable without a writer, so a missing writer does not switch checkpoints off. */
function checkpointsBy(
  { enabled, ...settings }: SessionSettings["checkpoint"],
  writers: NonNullable<NonNullable<AgentSessionsOptions["checkpoint"]>["writers"]>,
): NonNullable<AgentSessionsOptions["checkpoint"]> {
  return { ...settings, writers, ...(enabled === undefined || writers.length === 0 ? {} : { enabled }) };
}

/** An agent that cannot write files could not store memories, so the flush is off. */
function flushSettings({
  settings: { memoryFlush },
  tools,
  workspaceRoot,
}: AgentParts): NonNullable<AgentSessionsOptions["memoryFlush"]> {
  const canWrite = tools.some(({ definition }) => definition.name === "write");
  if (!canWrite) return { ...memoryFlush, enabled: false };
  return { ...(workspaceRoot === null ? {} : { workspaceRoot }), ...memoryFlush };
}

export function homeBreakers(
  home: string,
  { breaker }: SessionSettings,
  onUnwritable: (error: unknown) => void,
): SummarizerBreakers {
  return openBreakers({ path: join(home, "summarizer-breakers.json"), ...breaker, onUnwritable });
}
