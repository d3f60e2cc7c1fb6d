import { sessionSettings } from "@throughline/config";
import { maskSecrets, type SessionSettings, settingOf } from "@throughline/config/internal";
import type { SessionStore, AgentTool } from "@throughline/core";
import { causeText } from "@throughline/core/internal";
import type { WholeTurnListener } from "@throughline/session/internal";
import { createAgentSessions } from "@throughline/session/whole-turn";
import type { AgentSessions, AgentSessionsOptions } from "@throughline/session/whole-turn";
import type { SummarizerBreakers } from "@throughline/summarizer-providers/internal";
import type { AgentContext } from "./agent-context.ts";
import type { ChosenModel } from "./choose-model.ts";
import { homeBreakers } from "./home-breakers.ts";
import { summaryModels } from "./summary-models.ts";
import { workspaceTools } from "./workspace-tools.ts";

/** Holds what a configuration sets of an agent, whichever model answers. */
export interface AgentParts {
  readonly context: AgentContext;
  readonly store: SessionStore;
  readonly tools: readonly AgentTool[];
  /** Null without tools of the workspace. */
  readonly workspaceRoot: string | null;
  readonly settings: SessionSettings;
  readonly breakers: SummarizerBreakers;
}

export interface AgentListener {
  readonly onEvent: WholeTurnListener;
  /** Receives a sentence for people, such as one for each named model that is left out. */
  readonly onNote: (message: string) => void;
}

/** @throws {ThroughlineError} CONFIG_INVALID */
export async function agentParts(
  context: AgentContext,
  store: SessionStore,
  { hasTools, onNote }: Pick<AgentListener, "onNote"> & { readonly hasTools: boolean },
): Promise<AgentParts> {
  const settings = sessionSettings(context.config);
  for (const { message } of context.config.notes) onNote(maskSecrets(message));
  const breakers = homeBreakers(context, settings, onNote);
  const { tools, root } = hasTools ? await workspaceTools(context, store, onNote) : { tools: [], root: null };
  return { context, store, tools, workspaceRoot: root, settings, breakers };
}

/** Opens the sessions in which one model answers, because the summarizers depend on that model. */
export function openAgentSessions(
  parts: AgentParts,
  chosen: ChosenModel,
  { onEvent, onNote }: AgentListener,
): AgentSessions {
  const { context, store, tools, settings, breakers } = parts;
  const { summarizers, extractive, writers, notes } = summaryModels({
    settings,
    chosen,
    breakers,
    environment: context.environment,
    onFailed: (name, cause) => onNote(`No summary by ${name}: ${causeText(cause)}`),
  });
  for (const note of notes) onNote(note);
  const { compaction, checkpoint, retry, turn, maxOutputTokens, sendPolicy, reset } = settings;
  const { agentId, namespace } = context.scope;
  const system = String(settingOf(context.config.settings, "system") ?? "");
  const memorySearch = tools.find(({ definition }) => definition.name === "memory_search");
  return createAgentSessions({
    store,
    agentId,
    namespace,
    ...turn,
    sendPolicy,
    reset,
    results: settings.results,
    titles: titlesBy(settings, summarizers.length > 0, onNote),
    model: { ...chosen.model, maxOutputTokens },
    system: system === "" ? null : system,
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

function titlesBy(
  { titles }: SessionSettings,
  hasModel: boolean,
  onNote: (note: string) => void,
): SessionSettings["titles"] {
  if (titles !== "model" || hasModel) return titles;
  onNote("No model writes summaries, so the rules write the titles, too.");
  return "rules";
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
