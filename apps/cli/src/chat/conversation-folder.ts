import { resolve } from "node:path";
import type { CommandContext } from "../command.ts";
import { realFolder } from "../session-names.ts";

/** The folder of a conversation, through links: that of the tools, which is the working directory unless one is given. */
export function conversationFolder({ host, settings }: CommandContext): string {
  const workspace = settings.find(({ key }) => key === "workspace")?.value;
  return realFolder(resolve(host.workingDirectory, String(workspace ?? ".")));
}
