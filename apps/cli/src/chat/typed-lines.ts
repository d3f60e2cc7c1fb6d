import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { CommandContext } from "../command.ts";

/** The file of the lines that were typed in `chat` with an agent. */
export function typedLinesPath({ settings }: Pick<CommandContext, "settings">, agentId: string): string {
  const home = String(settings.find(({ key }) => key === "home")?.value ?? "");
  return join(home, `chat-history-${agentId}.jsonl`);
}

/** Deletes the typed lines of an agent: they may repeat what was just erased, and no line says which session it was for. */
export function forgetTypedLines(context: CommandContext, agentId: string): void {
  const path = typedLinesPath(context, agentId);
  if (!existsSync(path)) return;
  rmSync(path, { force: true });
  context.output.note(`The lines typed in \`chat\`, which may repeat it, were deleted: ${path}`);
}
