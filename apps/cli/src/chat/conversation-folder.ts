import { resolve } from "node:path";
import type { CommandContext } from "../command.ts";
import { realFolder } from "../session-names.ts";

/**
 * Resolves links, because folders are compared by path. The tools' folder is the working directory unless a workspace
 * is set.
 */
export function conversationFolder({ host, settings }: CommandContext): string {
  const workspace = settings.find(({ key }) => key === "workspace")?.value;
  return realFolder(resolve(host.workingDirectory, String(workspace ?? ".")));
}
