import { settingOf } from "@throughline/config/internal";
import { canMoveCursor } from "../chat/chat-view.ts";
import type { ChatOptions } from "../chat/run-chat.ts";
import { LiveTerminal } from "../chat/screen/live-terminal.ts";
import type { CommandContext, CommandInput } from "../command.ts";

/**
 * Runs a conversation on a terminal, which gets its prompt before anything else is loaded; otherwise stdin is the text of
 * one turn.
 */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const options = input.options as ChatOptions;
  const isInteractive = options.once === undefined && isTerminal(context);
  const isLive = isInteractive && !context.output.isJson && canMoveCursor(context);
  // A passphrase that is typed at an early prompt would be taken for a message.
  if (isLive && asksPassphrase(context)) await context.openStore("write");
  const terminal = isLive ? new LiveTerminal(context.host, context.output) : null;
  try {
    terminal?.screen.flush();
    const { runChat } = await import("../chat/run-chat.ts");
    return await runChat(context, options, { isInteractive, terminal });
  } finally {
    terminal?.close();
  }
}

function asksPassphrase({ settings }: CommandContext): boolean {
  return settingOf(settings, "encryption.keyring") !== null && settingOf(settings, "encryption.mainKey") === "prompt";
}

function isTerminal({ host, settings }: CommandContext): boolean {
  const isInputAllowed = settingOf(settings, "input") !== false;
  return isInputAllowed && host.stdin.isTTY === true && host.stdout.isTTY === true;
}
