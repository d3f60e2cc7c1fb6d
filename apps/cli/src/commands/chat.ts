import { settingOf } from "@throughline/config/internal";
import { canMoveCursor } from "../chat/chat-view.ts";
import type { ChatOptions } from "../chat/run-chat.ts";
import { LiveTerminal } from "../chat/screen/live-terminal.ts";
import type { CommandContext, CommandInput } from "../command.ts";

/** A terminal gets a conversation, and its prompt before anything else is loaded; otherwise stdin is the text of one turn. */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const options = input.options as ChatOptions;
  const isInteractive = options.once === undefined && isTerminal(context);
  const isLive = isInteractive && !context.output.isJson && canMoveCursor(context);
  const terminal = isLive ? new LiveTerminal(context.host, context.output) : null;
  try {
    terminal?.screen.flush();
    const { runChat } = await import("../chat/run-chat.ts");
    return await runChat(context, options, { isInteractive, terminal });
  } finally {
    terminal?.close();
  }
}

function isTerminal({ host, settings }: CommandContext): boolean {
  const isInputAllowed = settingOf(settings, "input") !== false;
  return isInputAllowed && host.stdin.isTTY === true && host.stdout.isTTY === true;
}
