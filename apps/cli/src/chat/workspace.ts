import { realpathSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { AgentTool, SessionStore } from "@throughline/core";

import type { CommandContext } from "../command.ts";
import { parseStoreUrl } from "@throughline/config";

/** Tools, and the folder they are confined to; null without any. */
export interface WorkspaceOfTools {
  readonly tools: readonly AgentTool[];
  readonly root: string | null;
}

/**
 * What the model may do in the workspace: nothing, read and list, write and edit in the memory folder alone, or write and
 * edit everywhere; never outside of it. Whoever may
 * read may also search memory files and what the session no longer has in its context.
 */
export async function workspaceTools(context: CommandContext, store: SessionStore): Promise<WorkspaceOfTools> {
  const { host, settings, output } = context;
  const valueOf = (key: string): unknown => settings.find((setting) => setting.key === key)?.value;
  const which = valueOf("tools");
  if (which === "none") return { tools: [], root: null };
  const root = resolve(host.workingDirectory, String(valueOf("workspace") ?? "."));
  const rules = fileRules(context, root);
  const search = await memorySearchTool(context, store, { root, reach: "self" });
  if (rules.deny.some((folder) => isAround(folder, root))) {
    output.note(
      `The workspace ${JSON.stringify(root)} lies in the store, so the model gets no file tools. Choose another folder with --workspace.`,
    );
    return { tools: [search], root };
  }
  const { createWorkspaceTools } = await import("@throughline/tools");
  const memoryFolder = String(valueOf("session.memoryFlush.memoryFolder"));
  const writing = which === "memory" ? { writable: [memoryFolder] } : { readOnly: which !== "all" };
  return { tools: [...createWorkspaceTools({ root, ...rules, ...writing }), search], root };
}

/** The tool `memory_search` over a workspace and the sessions of the store. */
export async function memorySearchTool(
  context: CommandContext,
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

/** What Throughline keeps below the root of a `jsonl:` store. */
const storeFolders = ["agents", "namespaces"];

/** What Throughline keeps in the home, beside such a store. Others of these begin with a name that stands here. */
const homeFiles: readonly string[] = [
  "config.json",
  "sessions.db",
  "inherited.json",
  "summarizer-breakers.json",
  "chat-history",
];

/**
 * The log must not be read back by the one it is of, nor changed; nor the keys that lie in the configuration. Of a home or
 * a store's root that is the workspace, or holds it, only what Throughline keeps there is denied.
 */
function fileRules({ host, settings, storeUrl, configPath }: CommandContext, root: string): FileRules {
  const valueOf = (key: string): unknown => settings.find((setting) => setting.key === key)?.value;
  const home = resolve(host.workingDirectory, String(valueOf("home")));
  const address = parseStoreUrl(storeUrl, host.workingDirectory);
  const deny: string[] = [];
  const denyFiles = [configPath];
  for (const folder of address.scheme === "jsonl" ? [home, address.root] : [home]) {
    if (isAround(folder, root)) deny.push(...storeFolders.map((name) => join(folder, name)));
    else deny.push(folder);
  }
  if (isAround(home, root)) denyFiles.push(...homeFiles.map((name) => join(home, name)));
  if (address.scheme === "sqlite") denyFiles.push(address.path);
  return { deny, denyFiles, allow: (valueOf("toolsAllow") ?? []) as readonly string[] };
}

/** Whether a folder is another one, or one it lies in, by what they are. False where one of them is not there. */
function isAround(folder: string, inner: string): boolean {
  const outer = statOrNull(folder);
  if (outer === null || statOrNull(inner) === null) return false;
  for (let path = realpathSync(inner); ; path = dirname(path)) {
    const stats = statOrNull(path);
    if (stats !== null && stats.dev === outer.dev && stats.ino === outer.ino) return true;
    if (path === dirname(path)) return false;
  }
}

function statOrNull(path: string): { readonly dev: bigint; readonly ino: bigint } | null {
  try {
    return statSync(path, { bigint: true });
  } catch {
    return null;
  }
}
