import { join } from "node:path";
import { parseStoreUrl } from "@throughline/config";
import { settingOf } from "@throughline/config/internal";
import type { AgentTool, SessionStore } from "@throughline/core";
import type { WorkspaceToolsOptions } from "@throughline/tools";
import type { MeaningSearch } from "@throughline/tools/internal";
import { type AgentContext, conversationFolder, homeOf, workspaceOf } from "./agent-context.ts";
import { type AskChange, ChangeApprovals } from "./change-approvals.ts";
import { isAround } from "./node/folders.ts";

/** `root` is null without tools. */
export interface WorkspaceOfTools {
  readonly tools: readonly AgentTool[];
  readonly root: string | null;
  /** Is null where every call runs without a decision. */
  readonly approvals: ChangeApprovals | null;
}

interface WorkspaceToolsParts {
  readonly meaning: MeaningSearch | null;
  readonly onNote: (message: string) => void;
  /** Asks a person about changes of files; null where no person can be asked. */
  readonly ask: AskChange | null;
}

/**
 * Grants the model access to the workspace by the setting `tools`: none, read, write in the memory folder, or write
 * everywhere. Access never extends beyond the workspace. A model that may read may also search memory files and the
 * session's earlier records. Where a person can be asked and `tools` is not set, the model may ask to write everywhere.
 */
export async function workspaceTools(
  context: AgentContext,
  store: SessionStore,
  { meaning, onNote, ask }: WorkspaceToolsParts,
): Promise<WorkspaceOfTools> {
  const which = allowedTools(context, ask !== null);
  if (which === "none") return { tools: [], root: null, approvals: null };
  const root = workspaceOf(context);
  const rules = fileRules(context, root);
  const search = await memorySearchTool(context, store, { root, reach: "self", meaning });
  if (rules.deny.some((folder) => isAround(folder, root))) {
    onNote(
      `The workspace ${JSON.stringify(root)} lies in the store, so the model gets no file tools. Choose another folder with --workspace.`,
    );
    return { tools: [search], root, approvals: null };
  }
  const { createWorkspaceTools } = await import("@throughline/tools");
  const memoryFolder = memoryFolderOf(context);
  const writing = which === "memory" ? { writable: [memoryFolder] } : { readOnly: which !== "all" };
  const options = { root, ...rules, ...writing };
  const approvals = which === "all" ? await changeApprovals(context, store, options, ask) : null;
  const expectBefore = approvals?.expectBefore;
  return { tools: [...createWorkspaceTools({ ...options, expectBefore }), search], root, approvals };
}

function memoryFolderOf({ config }: AgentContext): string {
  return String(settingOf(config.settings, "session.memoryFlush.memoryFolder"));
}

/** Returns the setting `tools`. It is `all` where it is not set and a person decides on each change. */
function allowedTools({ config: { settings } }: AgentContext, canAsk: boolean): unknown {
  const setting = settings.find(({ key }) => key === "tools");
  return canAsk && setting?.source === "default" ? "all" : (setting?.value ?? null);
}

/**
 * A program that cannot ask runs what the setting `tools` allows, but for the files that a person always decides on.
 * A change that a flag allowed has a record that says so.
 */
async function changeApprovals(
  context: AgentContext,
  store: SessionStore,
  options: WorkspaceToolsOptions,
  ask: AskChange | null,
): Promise<ChangeApprovals> {
  const { settings } = context.config;
  const rule = settingOf(settings, "approval") as "ask" | "allow" | "deny";
  const deciding = rule === "ask" ? "tools" : "approval";
  const decider = settings.some(({ key, source }) => key === deciding && source === "flag") ? "flag" : "setting";
  const { createChangePlanner } = await import("@throughline/tools/internal");
  const plan = createChangePlanner(options);
  return new ChangeApprovals({
    store,
    plan,
    folder: conversationFolder(context),
    memoryFolder: memoryFolderOf(context),
    rule,
    decider,
    ask,
  });
}

interface MemorySearchPlace {
  readonly root: string;
  readonly reach: "self" | "agent";
  /** Null where no embedder is configured. */
  readonly meaning: MeaningSearch | null;
}

export async function memorySearchTool(
  context: AgentContext,
  store: SessionStore,
  { root, reach, meaning }: MemorySearchPlace,
): Promise<AgentTool> {
  const { createMemorySearchTool } = await import("@throughline/tools");
  return createMemorySearchTool({
    root,
    ...fileRules(context, root),
    store,
    sessions: reach,
    meaning: meaning ?? undefined,
  });
}

interface FileRules {
  readonly deny: readonly string[];
  readonly denyFiles: readonly string[];
  readonly allow: readonly string[];
}

/** Throughline keeps these folders below the root of a `jsonl:` store. */
const storeFolders = ["agents", "namespaces"];

/** Throughline keeps these files in the home beside such a store. Names with one of them as a prefix are denied too. */
const homeFiles: readonly string[] = [
  "config.json",
  "sessions.db",
  "sync.json",
  "sync-lock-",
  "synced-files-",
  "summarizer-breakers.json",
  "embedded-tokens.json",
  "chat-history",
  "edited-",
  "usage",
];

/**
 * The model must not read or change its own log, or read the keys in the configuration. If the workspace is the home or
 * a store's root, or is inside it, only Throughline's own files are denied.
 */
export function fileRules(context: AgentContext, root: string): FileRules {
  const { config, storeUrl, workingDirectory, configPath } = context;
  const home = homeOf(context);
  const address = parseStoreUrl(storeUrl, workingDirectory);
  const deny: string[] = [];
  const denyFiles = [configPath];
  for (const folder of address.scheme === "jsonl" ? [home, address.root] : [home]) {
    if (isAround(folder, root)) deny.push(...storeFolders.map((name) => join(folder, name)));
    else deny.push(folder);
  }
  if (isAround(home, root)) denyFiles.push(...homeFiles.map((name) => join(home, name)));
  if (address.scheme === "sqlite") denyFiles.push(address.path);
  return { deny, denyFiles, allow: (settingOf(config.settings, "toolsAllow") ?? []) as readonly string[] };
}
