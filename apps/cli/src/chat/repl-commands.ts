import { showContext, showHistory } from "./repl-reports.ts";
import { showStatus } from "./repl-status.ts";
import { checkpointCurrent, compactCurrent, listTheCheckpoints } from "./repl-summaries.ts";
import { acceptReset, recoverEarlier } from "./repl-replaced.ts";
import { deleteSession, listTheSessions, newSession, resetCurrent, switchSession } from "./repl-sessions.ts";
import type { ReplContext } from "./repl-context.ts";

export interface ReplCommand {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly usage: string;
  readonly help: string;
  run(repl: ReplContext, argument: string): Promise<void>;
}

const help: ReplCommand = {
  name: "help",
  aliases: ["?"],
  usage: "/help",
  help: "this list",
  run: async ({ context: { output } }) => {
    for (const { usage, help: text } of replCommands)
      await output.line({ text: usage.padEnd(24), style: "cyan" }, text);
    await output.line(
      "Alt+Enter, Ctrl+J or a \\ at the end makes a new line. Ctrl+R finds an earlier one. Ctrl+C cancels a turn; twice, it leaves.",
    );
  },
};

const model: ReplCommand = {
  name: "model",
  aliases: [],
  usage: "/model [PROVIDER/NAME]",
  help: "which model answers; another one from now on",
  run: async ({ context: { output }, conversation }, name) => {
    const { name: shown, reason } = name === "" ? conversation.chosen : await conversation.useModel(name);
    await output.line(`model: ${shown} (${reason})`);
  },
};

/** The order is the one that `/help` prints. */
export const replCommands: readonly ReplCommand[] = [
  help,
  { name: "new", aliases: [], usage: "/new [LABEL]", help: "create a session and switch to it", run: newSession },
  {
    name: "sessions",
    aliases: ["list"],
    usage: "/sessions, /list",
    help: "the sessions, newest first",
    run: listTheSessions,
  },
  {
    name: "switch",
    aliases: [],
    usage: "/switch SESSION",
    help: "go to another: key, id, or the beginning of key, id or label",
    run: switchSession,
  },
  {
    name: "history",
    aliases: [],
    usage: "/history [N] [--all]",
    help: "the messages, shortened; --all: also before compactions",
    run: showHistory,
  },
  { name: "context", aliases: [], usage: "/context", help: "how full the window is", run: showContext },
  {
    name: "status",
    aliases: [],
    usage: "/status",
    help: "messages, tokens, compactions, checkpoints, summarizers, what is pending",
    run: showStatus,
  },
  model,
  {
    name: "continue",
    aliases: [],
    usage: "/continue",
    help: "resume a turn that was interrupted, canceled or failed",
    run: (repl) => repl.runTurn(null),
  },
  {
    name: "compact",
    aliases: [],
    usage: "/compact",
    help: "replace the older messages by a summary",
    run: compactCurrent,
  },
  {
    name: "checkpoint",
    aliases: [],
    usage: "/checkpoint",
    help: "write down where the conversation stands",
    run: checkpointCurrent,
  },
  {
    name: "checkpoints",
    aliases: [],
    usage: "/checkpoints",
    help: "the checkpoints there are",
    run: listTheCheckpoints,
  },
  {
    name: "reset",
    aliases: [],
    usage: "/reset",
    help: "archive the messages and start a new session under this key",
    run: resetCurrent,
  },
  {
    name: "accept",
    aliases: [],
    usage: "/accept",
    help: "after another program reset this session: continue in the new one",
    run: acceptReset,
  },
  {
    name: "recover",
    aliases: [],
    usage: "/recover",
    help: "after another program reset this session: continue in a copy of it",
    run: recoverEarlier,
  },
  {
    name: "delete",
    aliases: [],
    usage: "/delete SESSION",
    help: "archive another session: its key or id, exactly",
    run: deleteSession,
  },
  {
    name: "quit",
    aliases: ["exit"],
    usage: "/quit, quit, exit",
    help: "leave; Ctrl+D does it too",
    run: async () => {},
  },
];
