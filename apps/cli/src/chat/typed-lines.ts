import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { settingOf } from "@throughline/config/internal";
import type { CommandContext } from "../command.ts";

export function typedLinesPath({ settings }: Pick<CommandContext, "settings">, agentId: string): string {
  return join(String(settingOf(settings, "home")), `chat-history-${agentId}.jsonl`);
}

/**
 * Deletes the typed lines of an agent, because they may repeat the erased content. A line does not name its session, so
 * all of them go.
 */
export function forgetTypedLines(context: CommandContext, agentId: string): void {
  const path = typedLinesPath(context, agentId);
  if (!existsSync(path)) return;
  rmSync(path, { force: true });
  context.output.note(`The lines typed in \`chat\`, which may repeat it, were deleted: ${path}`);
}
