import { join } from "node:path";
import { parseStoreUrl } from "@throughline/config";
import { settingOf } from "@throughline/config/internal";
import type { AgentTool, SessionStore } from "@throughline/core";
import { type AgentContext, homeOf, workspaceOf } from "./agent-context.ts";
import { isAround } from "./node/folders.ts";

/** `root` is null without tools. */
export interface WorkspaceOfTools {
  readonly tools: readonly AgentTool[];
  readonly root: string | null;
}

/**
 * Grants the model access to the workspace by the setting `tools`: none, read, write in the memory folder, or write
 * everywhere. Access never extends beyond the workspace. A model that may read may also search memory files and the
 * session's earlier records.
 */
export async function workspaceTools(
  context: AgentContext,
  store: SessionStore,
  onNote: (message: string) => void,
): Promise<WorkspaceOfTools> {
  const { settings } = context.config;
  const which = settingOf(settings, "tools");
  if (which === "none") return { tools: [], root: null };
  const root = workspaceOf(context);
  const rules = fileRules(context, root);
  const search = await memorySearchTool(context, store, { root, reach: "self" });
  if (rules.deny.some((folder) => isAround(folder, root))) {
    onNote(
      `The workspace ${JSON.stringify(root)} lies in the store, so the model gets no file tools. Choose another folder with --workspace.`,
    );
    return { tools: [search], root };
  }
  const { createWorkspaceTools } = await import("@throughline/tools");
  const memoryFolder = String(settingOf(settings, "session.memoryFlush.memoryFolder"));
  const writing = which === "memory" ? { writable: [memoryFolder] } : { readOnly: which !== "all" };
  return { tools: [...createWorkspaceTools({ root, ...rules, ...writing }), search], root };
}

export async function memorySearchTool(
  context: AgentContext,
  store: SessionStore,
  { root, reach }: { readonly root: string; readonly reach: "self" | "agent" },
): Promise<AgentTool> {
  const { createMemorySearchTool } = await import("@throughline/tools");
  return createMemorySearchTool({ root, ...fileRules(context, root), store, sessions: reach });
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
  "chat-history",
  "usage",
];

/**
 * The model must not read or change its own log, or read the keys in the configuration. If the workspace is the home or
 * a store's root, or is inside it, only Throughline's own files are denied.
 */
function fileRules(context: AgentContext, root: string): FileRules {
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
