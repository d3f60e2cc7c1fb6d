import { resolve } from "node:path";
import type { AgentTool, SessionStore } from "@throughline/core";
import type { SessionTool } from "@throughline/session";
import type { CommandContext } from "../command.ts";
import { parseStoreUrl } from "../store-url.ts";

/** Tools, and the folder they are confined to; null without any. */
export interface WorkspaceOfTools {
  readonly tools: readonly SessionTool[];
  readonly root: string | null;
}

/**
 * What the model may do in the workspace: nothing, read and list, or write and edit too; never outside of it. Whoever may
 * read may also search memory files and what the session no longer has in its context.
 */
export async function workspaceTools(context: CommandContext, store: SessionStore): Promise<WorkspaceOfTools> {
  const { host, settings } = context;
  const valueOf = (key: string): unknown => settings.find((setting) => setting.key === key)?.value;
  const which = valueOf("tools");
  if (which === "none") return { tools: [], root: null };
  const { createWorkspaceTools } = await import("@throughline/workspace-tools");
  const root = resolve(host.workingDirectory, String(valueOf("workspace") ?? "."));
  const files = createWorkspaceTools({ root, deny: deniedPaths(context, root), readOnly: which !== "all" });
  return { tools: [...files, await memorySearchTool(context, store, { root, reach: "self" })], root };
}

/** The tool `memory_search` over a workspace and the sessions of the store. */
export async function memorySearchTool(
  context: CommandContext,
  store: SessionStore,
  { root, reach }: { readonly root: string; readonly reach: "self" | "agent" },
): Promise<AgentTool> {
  const { createMemorySearchTool } = await import("@throughline/workspace-tools");
  return createMemorySearchTool({ root, deny: deniedPaths(context, root), store, sessions: reach });
}

/** The log must not be read back by the one it is of, nor changed; nor the keys that lie in the configuration. */
function deniedPaths({ host, settings, storeUrl }: CommandContext, root: string): readonly string[] {
  const { workingDirectory } = host;
  const address = parseStoreUrl(storeUrl, workingDirectory);
  const store =
    address.scheme === "sqlite"
      ? [address.path, `${address.path}-wal`, `${address.path}-shm`]
      : address.scheme === "jsonl"
        ? [address.root]
        : [];
  const home = String(settings.find(({ key }) => key === "home")?.value);
  return [...store, resolve(workingDirectory, home)].filter((path) => path !== root);
}
