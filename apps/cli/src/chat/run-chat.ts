import { sessionSettings } from "@throughline/config";
import {
  type AskChange,
  type Conversation,
  openConversation,
  type StartingSession,
  startingSession,
} from "@throughline/agent/internal";
import type { SessionStore } from "@throughline/core";
import type { CommandContext } from "../command.ts";
import { replCommands } from "./repl-commands.ts";
import { runOnce } from "./run-once.ts";
import type { ChatView } from "./chat-view.ts";
import { runRepl } from "./run-repl.ts";
import { usageError } from "../error-report.ts";
import { offerImport } from "../inherit/offer-import.ts";
import { chooseStart, hasImports } from "../picker/choose-start.ts";
import type { LiveTerminal } from "./screen/live-terminal.ts";

export interface ChatPlace {
  readonly isInteractive: boolean;
  /** Is null where rows cannot be painted again. */
  readonly terminal: LiveTerminal | null;
}

export interface ChatOptions {
  readonly key?: string;
  readonly once?: string;
  readonly whenBusy?: "queue" | "reject" | "branch";
}

/** Opens the conversation; without a terminal, the text of one turn is given or on stdin. */
export async function runChat(
  context: CommandContext,
  options: ChatOptions,
  { isInteractive, terminal }: ChatPlace,
): Promise<number> {
  const { output } = context;
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
  // The early prompt takes Ctrl-C, and nothing that is opened below learns of what came before.
  const { signal } = context;
  signal.throwIfAborted();
  const store = await context.openStore("write");
  signal.throwIfAborted();
  await offerImport(context, () => Promise.resolve(store), { canAsk: isInteractive });
  const key = options.key ?? sessionSettings(context.config).defaultKey;
  const first = await startingSession(context, store, key);
  const start = isInteractive ? await chosenStart(context, store, first) : first;
  if (typeof start === "number") return start;
  signal.throwIfAborted();
  // A turn runs, and so asks, only while the conversation has its view.
  let view: ChatView | null = null;
  const ask: AskChange = async (question, signal) => view?.ask(question, signal) ?? { decision: "cancel" };
  await using conversation: Conversation = await openConversation(context, store, start, {
    onNote: (message) => output.note(message),
    ask: isInteractive ? ask : null,
  });
  const whenBusy = options.whenBusy ?? null;
  return text === null
    ? await runRepl(context, conversation, { whenBusy, terminal, onView: (opened) => (view = opened) })
    : await runOnce(context, conversation, { text, whenBusy });
}

/** Opens the picker in a folder without a session, when the store has sessions of other programs. */
async function chosenStart(
  context: CommandContext,
  store: SessionStore,
  first: StartingSession,
): Promise<StartingSession | number> {
  if (first.isAnyKey !== true || !(await hasImports(context, store))) return first;
  const chosen = await chooseStart(context, store, { escape: "new" });
  if (chosen.kind === "done") return chosen.code;
  return chosen.kind === "start" ? chosen.start : first;
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
