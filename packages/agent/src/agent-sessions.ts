import { sessionSettings } from "@throughline/config";
import { maskSecrets, type SessionSettings, settingOf } from "@throughline/config/internal";
import type { SessionStore, AgentTool } from "@throughline/core";
import { causeText } from "@throughline/core/internal";
import type { WholeTurnListener } from "@throughline/session/internal";
import { createAgentSessions } from "@throughline/session/whole-turn";
import type { AgentSessions, AgentSessionsOptions } from "@throughline/session/whole-turn";
import type { SummarizerBreakers } from "@throughline/summarizer-providers/internal";
import { type AgentContext, conversationFolder } from "./agent-context.ts";
import type { ChosenModel } from "./choose-model.ts";
import { homeBreakers } from "./home-breakers.ts";
import type { MeaningIndex } from "@throughline/tools/internal";
import { openMeaning } from "./open-meaning.ts";
import { type ProjectFile, projectPrompt, readProjectFiles } from "./node/project-files.ts";
import { summaryModels } from "./summary-models.ts";
import type { AskChange, ChangeApprovals } from "./change-approvals.ts";
import { workspaceTools } from "./workspace-tools.ts";

/** Holds what a configuration sets of an agent, whichever model answers. */
export interface AgentParts {
  readonly context: AgentContext;
  readonly store: SessionStore;
  readonly tools: readonly AgentTool[];
  /** Null without tools of the workspace. */
  readonly workspaceRoot: string | null;
  /** Is null where every call runs without a decision. */
  readonly approvals: ChangeApprovals | null;
  /** Holds the instructions of the folder, which later openings of sessions send; `reload` replaces them. */
  projectFiles: readonly ProjectFile[];
  /** Holds whether the setting sends them. */
  readonly hasProjectFiles: boolean;
  readonly settings: SessionSettings;
  readonly breakers: SummarizerBreakers;
  /** Holds the filler of vectors, which the opener of the parts closes. It is null without an embedder. */
  readonly meaning: MeaningIndex | null;
}

export interface AgentListener {
  readonly onEvent: WholeTurnListener;
  /** Receives a sentence for people, such as one for each named model that is left out. */
  readonly onNote: (message: string) => void;
}

interface AgentPartsOptions extends Pick<AgentListener, "onNote"> {
  readonly hasTools: boolean;
  /** Asks a person about each change of a file. @default no person can be asked */
  readonly ask?: AskChange | null;
}

/** @throws {ThroughlineError} CONFIG_INVALID */
export async function agentParts(
  context: AgentContext,
  store: SessionStore,
  { hasTools, onNote, ask = null }: AgentPartsOptions,
): Promise<AgentParts> {
  const settings = sessionSettings(context.config);
  for (const { message } of context.config.notes) onNote(maskSecrets(message));
  const breakers = homeBreakers(context, settings, onNote);
  const meaning = hasTools ? await openMeaning(context, store, { onNote }) : null;
  // Sessions of earlier processes and of imports may have no vectors yet.
  meaning?.poke();
  const { tools, root, approvals } = hasTools
    ? await workspaceTools(context, store, { meaning, onNote, ask })
    : { tools: [], root: null, approvals: null };
  const hasProjectFiles = sendsProjectFiles(context, ask !== null);
  const projectFiles = hasProjectFiles ? await readProjectFiles(conversationFolder(context)) : [];
  const ofFolder = { projectFiles, hasProjectFiles, tools, workspaceRoot: root, approvals };
  return { ...ofFolder, context, store, settings, breakers, meaning };
}

/** A person on a terminal sees which files are sent. A script names the setting. */
function sendsProjectFiles({ config }: AgentContext, canAsk: boolean): boolean {
  const setting = config.settings.find(({ key }) => key === "projectFiles");
  return setting?.source === "default" ? canAsk : setting?.value === true;
}

/** Opens the sessions in which one model answers, because the summarizers depend on that model. */
export function openAgentSessions(
  parts: AgentParts,
  chosen: ChosenModel,
  { onEvent, onNote }: AgentListener,
): AgentSessions {
  const { context, store, tools, approvals, settings, breakers, meaning } = parts;
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
  const own = String(settingOf(context.config.settings, "system") ?? "");
  const system = [own, projectPrompt(parts.projectFiles) ?? ""].filter((text) => text !== "").join("\n\n");
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
    ...(approvals === null ? {} : { approveTool: approvals.approveTool }),
    summarizers,
    extractive,
    breakers,
    compaction: { ...(memorySearch === undefined ? {} : { memorySearchTool: "memory_search" }), ...compaction },
    checkpoint: checkpointsBy(checkpoint, writers),
    memoryFlush: flushSettings(parts),
    // Without a model the rules always write the summary, so a retry could not improve it.
    retry: summarizers.length === 0 ? { ...retry, intervalSeconds: 0 } : retry,
    onEvent: (event) => {
      approvals?.see(event);
      if (event.name === "turn.closed") meaning?.poke();
      onEvent(event);
    },
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
