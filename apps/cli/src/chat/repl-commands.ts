import { counted } from "../counted.ts";
import { pickChoice } from "../picker/choice-picker.ts";
import { showApprovals } from "./repl-approvals.ts";
import { forkCurrent, rewindCurrent } from "./repl-branches.ts";
import { explainCall, exportCurrent, openHit, searchAll, showUsage } from "./repl-tools.ts";
import { showContext, showHistory } from "./repl-reports.ts";
import { showStatus } from "./repl-status.ts";
import { checkpointCurrent, compactCurrent, listTheCheckpoints } from "./repl-summaries.ts";
import { acceptReset, recoverEarlier } from "./repl-replaced.ts";
import {
  deleteSession,
  listTheSessions,
  newSession,
  resetCurrent,
  resumeSession,
  switchSession,
} from "./repl-sessions.ts";
import { copyReply, renameCurrent } from "./repl-texts.ts";
import { goInTree } from "./repl-tree.ts";
import { type ArgumentContext, type Choice, exportChoices, modelChoices, sessionChoices } from "./repl-arguments.ts";
import type { ReplContext } from "./repl-context.ts";

export interface ReplCommand {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly usage: string;
  readonly help: string;
  /** Returns what may stand behind the command. The completion shows those that begin with what is typed. */
  arguments?(repl: ArgumentContext, word: string): Promise<readonly Choice[]>;
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
      "Shift+Enter, Ctrl+J or a \\ at the end makes a new line. Ctrl+R finds an earlier one. Ctrl+C cancels a turn; twice, it leaves.",
    );
  },
};

const model: ReplCommand = {
  name: "model",
  aliases: ["models"],
  usage: "/model [PROVIDER/NAME]",
  help: "which model answers; another one from now on",
  arguments: modelChoices,
  run: async (repl, typed) => {
    const { context, conversation } = repl;
    const { output } = context;
    const name = typed === "" ? await pickedModel(repl) : typed;
    const { name: shown, reason } = name === "" ? conversation.chosen : await conversation.useModel(name);
    await output.line(`model: ${shown} (${reason})`);
  },
};

/** Lets the person choose. Returns an empty name for the model that answers already. */
async function pickedModel({ context, conversation, givenAway }: ReplContext): Promise<string> {
  // The beginning of a name, such as `ollama/`, is for the completion only.
  const models = (await modelChoices({ context, conversation })).filter(({ text }) => !text.endsWith("/"));
  const choices = models.map(({ text }, at) => ({ text, note: at === 0 ? "answers now" : "" }));
  const chosen = await givenAway(() => pickChoice(context, { title: "Which model answers", choices, first: 0 }));
  return chosen === null || chosen === 0 ? "" : (models[chosen]?.text ?? "");
}

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
    arguments: sessionChoices,
    run: switchSession,
  },
  {
    name: "resume",
    aliases: [],
    usage: "/resume",
    help: "pick a session of any program, by name or by words in it",
    run: resumeSession,
  },
  {
    name: "rename",
    aliases: [],
    usage: "/rename NAME",
    help: "name this session; its key stays",
    run: renameCurrent,
  },
  {
    name: "copy",
    aliases: [],
    usage: "/copy [N]",
    help: "the last reply into the clipboard; N: an earlier one",
    run: copyReply,
  },
  {
    name: "search",
    aliases: [],
    usage: "/search WORDS",
    help: "find words in the sessions of all programs",
    run: searchAll,
  },
  { name: "open", aliases: [], usage: "/open N", help: "hit N of the last search, with its neighbors", run: openHit },
  {
    name: "fork",
    aliases: [],
    usage: "/fork [N]",
    help: "continue in a copy; N: from before your message N, counted from the last",
    run: forkCurrent,
  },
  {
    name: "rewind",
    aliases: [],
    usage: "/rewind [N]",
    help: "go back before a message of yours, or N from the end; asks first",
    run: rewindCurrent,
  },
  {
    name: "tree",
    aliases: [],
    usage: "/tree",
    help: "all branches; go to a reply, or before a message of yours",
    run: goInTree,
  },
  {
    name: "export",
    aliases: [],
    usage: "/export [FORMAT] [PATH]",
    help: "write this session to a file; Markdown without a format",
    arguments: exportChoices,
    run: exportCurrent,
  },
  { name: "usage", aliases: [], usage: "/usage", help: "tokens and cost of this session", run: showUsage },
  {
    name: "explain",
    aliases: [],
    usage: "/explain [N]",
    help: "what the last call of the model was sent; N: call N, counted from the last",
    run: explainCall,
  },
  {
    name: "history",
    aliases: [],
    usage: "/history [N] [--all]",
    help: "the messages, shortened; --all: also before compactions",
    arguments: async () => [{ text: "--all", help: "also before compactions" }],
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
    name: "approvals",
    aliases: [],
    usage: "/approvals [off]",
    help: "whether changes of files are allowed in advance; off: ask again",
    arguments: async () => [{ text: "off", help: "ask again about each change" }],
    run: showApprovals,
  },
  {
    name: "continue",
    aliases: [],
    usage: "/continue",
    help: "resume a turn that was interrupted, canceled or failed",
    run: (repl) => repl.runTurn(null),
  },
  {
    name: "reload",
    aliases: [],
    usage: "/reload",
    help: "read the instructions of the folder and the session again",
    run: async ({ context: { output }, conversation, showEnd }) => {
      await conversation.reload();
      await showEnd();
      await output.line(
        `Read again: the session and ${counted(conversation.projectFiles.length, "instruction file")}.`,
      );
    },
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
    arguments: sessionChoices,
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
