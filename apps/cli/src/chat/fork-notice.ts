import { readWindow } from "@throughline/core";
import type { SessionState } from "@throughline/core";
import { sessionName, sessionProgram } from "@throughline/core/internal";
import { withinMemory } from "@throughline/core/internal/node";
import { measureContext, namedModel, nextContext } from "@throughline/http-api/internal/context-size";
import type { CommandContext } from "../command.ts";
import { grouped } from "../counted.ts";
import { shownFolder, shownProgram } from "../session-names.ts";
import { type Conversation, conversationFolder } from "@throughline/agent/internal";
import { realFolder } from "@throughline/core/internal/node";

/**
 * Explains what the first message sends to which model when it continues an import. It also names the tools' folder if
 * the session worked in another one. Empty for any other conversation.
 */
export async function forkNotice(
  context: CommandContext,
  { store, origin, chosen }: Pick<Conversation, "store" | "origin" | "chosen">,
): Promise<readonly string[]> {
  if (origin === null) return [];
  const { state, records } = await readWindow(withinMemory(store), origin.ref, { signal: context.signal });
  const { built, learned } = await nextContext(state, records);
  const windowTokens = chosen.model.windowTokens ?? chosen.model.assumedWindowTokens ?? null;
  const model = chosen.isOffline ? null : namedModel(chosen.name);
  const { gauge, breakdown } = await measureContext(built, { model, windowTokens, learned });
  const isTooLong = windowTokens !== null && gauge.tokens > windowTokens;
  // The program's count includes its system prompt and tools, which are not sent from here.
  const tokens = isTooLong ? gauge.tokens : gauge.tokens - breakdown.systemTokens;
  const whose = `~${grouped(tokens)} tokens of ${JSON.stringify(sessionName(state))} (${programOf(state)})`;
  const summary = `${whose} do not fit ${grouped(windowTokens ?? 0)}; a summary by ${chosen.name} replaces the older part.`;
  const all = chosen.isOffline
    ? `${whose} are given to the offline rules on this machine with your first message. /model chooses a model.`
    : `${whose} go to ${chosen.name} with your first message. /model changes it.`;
  return [`Continuing in a fork: ${isTooLong ? summary : all}`, ...folderNotice(context, state)];
}

function programOf({ entry }: SessionState): string {
  return shownProgram(sessionProgram(entry));
}

function folderNotice(context: CommandContext, { entry }: SessionState): readonly string[] {
  const folder = conversationFolder(context);
  const { cwd } = entry;
  if (typeof cwd !== "string" || realFolder(cwd) === folder) return [];
  const { userHome } = context.host;
  return [`The session worked in ${shownFolder(cwd, userHome)}. Tools work in ${shownFolder(folder, userHome)}.`];
}
