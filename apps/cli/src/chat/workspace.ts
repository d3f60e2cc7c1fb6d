import { resolve } from "node:path";
import type { SessionTool } from "@throughline/session";
import type { CommandContext } from "../command.ts";
import { parseStoreUrl } from "../store-url.ts";

/** What the model may do in the workspace: nothing, read and list, or write and edit too. Never outside of it. */
export async function workspaceTools({ host, settings, storeUrl }: CommandContext): Promise<readonly SessionTool[]> {
  const valueOf = (key: string): unknown => settings.find((setting) => setting.key === key)?.value;
  const which = valueOf("tools");
  if (which === "none") return [];
  const { createWorkspaceTools } = await import("@throughline/workspace-tools");
  const { workingDirectory } = host;
  const root = resolve(workingDirectory, String(valueOf("workspace") ?? "."));
  const address = parseStoreUrl(storeUrl, workingDirectory);
  const store =
    address.scheme === "sqlite"
      ? [address.path, `${address.path}-wal`, `${address.path}-shm`]
      : address.scheme === "jsonl"
        ? [address.root]
        : [];
  // The log must not be read back by the one it is of, nor changed; nor the keys that lie in the configuration.
  const deny = [...store, resolve(workingDirectory, String(valueOf("home")))].filter((path) => path !== root);
  return createWorkspaceTools({ root, deny, readOnly: which !== "all" });
}
