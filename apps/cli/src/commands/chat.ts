import { sessionSettings } from "@throughline/config";
import { type Conversation, openConversation, startingSession } from "@throughline/agent/internal";
import { settingOf } from "@throughline/config/internal";
import type { CommandContext, CommandInput } from "../command.ts";
import { replCommands } from "../chat/repl-commands.ts";
import { runOnce } from "../chat/run-once.ts";
import { runRepl } from "../chat/run-repl.ts";
import { usageError } from "../error-report.ts";
import { offerImport } from "../inherit/offer-import.ts";

export interface ChatOptions {
  readonly key?: string;
  readonly once?: string;
  readonly whenBusy?: "queue" | "reject" | "branch";
}

/** A terminal gets a conversation; otherwise stdin is the text of one turn. */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const options = input.options as ChatOptions;
  const { output } = context;
  const isInteractive = options.once === undefined && isTerminal(context);
  if (isInteractive && output.isJson)
    throw usageError("--json is for one turn: give its text with --once or on stdin.");
  const text = isInteractive ? null : (options.once ?? (await readInput(context)));
  if (text !== null && text.trim() === "") throw usageError("There is nothing to say: --once TEXT, or text on stdin.");
  const command = text === null ? null : /^\/(\w+)(?![\w/])/.exec(text)?.[1];
  if (replCommands.some(({ name, aliases }) => name === command || aliases.some((alias) => alias === command)))
    throw usageError(
      `/${command} is a command of the conversation on a terminal. Nothing was sent.`,
      {},
      "Run `throughline --help` for the command that does it here; to send the text, begin it with a space.",
    );
  const store = await context.openStore("write");
  await offerImport(context, store, { canAsk: isInteractive });
  const start = await startingSession(context, store, options.key ?? sessionSettings(context.config).defaultKey);
  await using conversation: Conversation = await openConversation(context, store, start, {
    onNote: (message) => output.note(message),
  });
  const whenBusy = options.whenBusy ?? null;
  return text === null
    ? await runRepl(context, conversation, { whenBusy })
    : await runOnce(context, conversation, { text, whenBusy });
}

function isTerminal({ host, settings }: CommandContext): boolean {
  const isInputAllowed = settingOf(settings, "input") !== false;
  return isInputAllowed && host.stdin.isTTY === true && host.stdout.isTTY === true;
}

async function readInput({ host, signal }: CommandContext): Promise<string> {
  if (host.stdin.isTTY === true) return "";
  const chunks: Buffer[] = [];
  const stop = (): void => void host.stdin.destroy();
  signal.addEventListener("abort", stop, { once: true });
  try {
    for await (const chunk of host.stdin) chunks.push(Buffer.from(chunk as Uint8Array));
  } finally {
    signal.removeEventListener("abort", stop);
  }
  return Buffer.concat(chunks)
    .toString("utf8")
    .replace(/^\uFEFF/, "");
}
