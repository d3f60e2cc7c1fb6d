import { resolve } from "node:path";
import { sessionSettings } from "@throughline/config";
import type { SessionStore } from "@throughline/core";
import { createConversation } from "../chat/conversation.ts";
import type { Conversation } from "../chat/conversation.ts";
import { conversationFolder } from "../chat/conversation-folder.ts";
import type { StartingSession } from "../chat/starting-session.ts";
import { causeText } from "../chat/event-note.ts";
import { workspaceTools } from "../chat/workspace.ts";
import type { CommandContext } from "../command.ts";
import { maskSecrets } from "@throughline/config/internal";
import { modelSettings } from "./model-settings.ts";
import { homeBreakers } from "./open-agent.ts";

export interface OpenConversationOptions {
  /** False for work without a turn, which needs no tools. @default true */
  readonly hasTools?: boolean;
}

/** @throws {ThroughlineError} CONFIG_INVALID, and errors of the model choice and of opening the session */
export async function openConversation(
  context: CommandContext,
  store: SessionStore,
  start: StartingSession,
  { hasTools = true }: OpenConversationOptions = {},
): Promise<Conversation> {
  const { host, output, settings } = context;
  const valueOf = (key: string): unknown => settings.find((setting) => setting.key === key)?.value ?? null;
  const window = settings.find(({ key }) => key === "windowTokens");
  const system = String(valueOf("system") ?? "");
  const agent = sessionSettings(context.config);
  for (const { message } of context.config.notes) output.note(maskSecrets(message));
  const breakers = homeBreakers(resolve(host.workingDirectory, String(valueOf("home"))), agent, (error) =>
    output.note(`What is known of the summarizers cannot be kept: ${causeText(error)}`),
  );
  const { tools, root } = hasTools ? await workspaceTools(context, store) : { tools: [], root: null };
  return createConversation(
    {
      store,
      system: system === "" ? null : system,
      tools,
      workspaceRoot: root,
      folder: conversationFolder(context),
      settings: agent,
      breakers,
      choice: {
        ...modelSettings(context),
        windowTokens: window === undefined || window.source === "default" ? null : Number(window.value),
      },
    },
    start,
  );
}
