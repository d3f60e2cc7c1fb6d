import { conversationFolder } from "@throughline/agent/internal";
import type { Conversation, AgentListener } from "@throughline/agent/internal";
import { hasErrorCode } from "@throughline/core";
import { causeText, nearestName, shellWord, stillAnswering } from "@throughline/core/internal";
import type { CommandContext } from "../command.ts";
import { reportError, withRemedy } from "../error-report.ts";
import { shownFolder, shownName } from "../session-names.ts";
import { terminalSafeLine } from "../terminal-safe.ts";
import { checkpointWaitMs } from "./chat-waits.ts";
import { eventNote } from "./event-note.ts";
import { forkNotice } from "./fork-notice.ts";
import { modelText, restoredText, unfinishedText } from "./greeting.ts";
import { createInputHistory } from "./input-history.ts";
import { typedLinesPath } from "./typed-lines.ts";
import { createLineEditor } from "./line-editor.ts";
import type { LineEditor } from "./line-editor.ts";
import { replCommands } from "./repl-commands.ts";
import type { ReplContext } from "./repl-context.ts";
import { sendDenied } from "./send-denied.ts";
import { createTurnPrinter } from "./turn-printer.ts";

export interface ReplOptions {
  readonly whenBusy: "queue" | "reject" | "branch" | null;
}

const leaveWords: ReadonlySet<string> = new Set(["/quit", "quit", "exit", "/exit"]);

export async function runRepl(
  context: CommandContext,
  conversation: Conversation,
  options: ReplOptions,
): Promise<number> {
  const { host, output, scope } = context;
  const history = createInputHistory(typedLinesPath(context, scope.agentId), (error) =>
    output.note(`The history of inputs is not kept: ${causeText(error)}`),
  );
  await greet(context, conversation);
  const canMoveCursor = (host.environment["TERM"] ?? "dumb") !== "dumb";
  const editor = createLineEditor(host, { prompt: "> ", history, canMoveCursor });
  const runTurn = (said: string | null): Promise<void> => takeTurn(context, conversation, editor, said, options);
  const interruptible: ReplContext["interruptible"] = async (work) => {
    const cancel = new AbortController();
    editor.onInterrupt(() => cancel.abort());
    try {
      await work(AbortSignal.any([context.signal, cancel.signal]));
    } finally {
      editor.onInterrupt(null);
    }
  };
  const reportedAlone: ReplContext["reportedAlone"] = async (names, work) => {
    conversation.listen(besideTurns(editor, names));
    try {
      await work();
    } finally {
      conversation.listen(besideTurns(editor));
    }
  };
  const repl: ReplContext = { context, conversation, runTurn, interruptible, reportedAlone };
  conversation.listen(besideTurns(editor));
  try {
    for (;;) {
      await output.flush();
      const submission = await editor.read();
      if (submission.kind === "leave") return await farewell(context, conversation, submission.code);
      const text = submission.text;
      if (text.trim() === "") continue;
      if (leaveWords.has(text.trim())) return await farewell(context, conversation, 0);
      await answered(context, conversation, () => act(repl, text));
    }
  } finally {
    editor.close();
    conversation.listen({ onEvent: () => {}, onNote: () => {} });
    await conversation.settle({
      waitMs: checkpointWaitMs.person,
      signal: host.signal,
      onWaiting: () => output.note("A checkpoint is being made; Ctrl-C leaves at once."),
    });
  }
}

/** Text that begins with a slash is never sent, so that a mistyped command does not become a message. */
async function act(repl: ReplContext, text: string): Promise<void> {
  if (!text.startsWith("/")) return repl.runTurn(text);
  const [, name = "", argument = ""] = /^\/(\S*)\s*([\s\S]*)$/.exec(text) ?? [];
  const command = replCommands.find((each) => each.name === name || each.aliases.includes(name));
  if (command !== undefined) return command.run(repl, argument.trim());
  const near = nearestName(
    name,
    replCommands.map((each) => each.name),
  );
  const { output } = repl.context;
  const hint = near === null ? "/help lists the commands." : `did you mean /${near}?`;
  const message = `Unknown command /${name}: ${hint} Nothing was sent; to say it, begin with a space.`;
  await output.line({ text: message, style: "red" });
}

async function takeTurn(
  context: CommandContext,
  conversation: Conversation,
  editor: LineEditor,
  text: string | null,
  { whenBusy }: ReplOptions,
): Promise<void> {
  const { output, signal } = context;
  const cancel = new AbortController();
  editor.onInterrupt(() => cancel.abort());
  const printer = createTurnPrinter(output);
  const before = conversation.ref.key;
  conversation.listen(printer);
  try {
    const turn = await conversation
      .runTurn(text, {
        signal: AbortSignal.any([signal, cancel.signal]),
        whenBusy,
        onDelta: printer.onDelta,
      })
      .finally(() => printer.finish());
    if (turn.outcome === "aborted")
      await output.line({ text: "(canceled; what had arrived is kept)", style: "yellow" });
    if (turn.denial !== null) {
      const { message, remedy } = sendDenied(conversation, turn.denial);
      await output.line({ text: `(${message} ${remedy} Then /continue asks the model.)`, style: "yellow" });
    }
    if (turn.outcome === "step-limit")
      await output.line({ text: "(stopped at the limit of model calls; /continue resumes)", style: "yellow" });
    if (turn.outcome === "waiting")
      await output.line({ text: "(tool calls still wait for a decision)", style: "yellow" });
    if (conversation.ref.key !== before)
      await output.line({ text: `(you are in ${conversation.ref.key} now)`, style: "dim" });
  } finally {
    editor.onInterrupt(null);
    conversation.listen(besideTurns(editor));
  }
}

function besideTurns(editor: LineEditor, silent: ReadonlySet<string> = new Set()): AgentListener {
  return {
    onEvent: (event) => {
      const note = silent.has(event.name) ? null : eventNote(event);
      if (note !== null) editor.say(terminalSafeLine(`(${note})`));
    },
    onNote: (message) => editor.say(terminalSafeLine(`(${message})`)),
  };
}

const replacedRemedy =
  "Nothing was sent. /accept continues in the new session; /recover continues in a copy of the earlier one.";

/** A failure ends the command or turn and not the conversation. */
async function answered(
  { host, output }: CommandContext,
  conversation: Conversation,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work();
  } catch (error) {
    await output.flush();
    const shown = hasErrorCode(error, "SESSION_REPLACED") ? withRemedy(error, replacedRemedy) : error;
    host.stderr.write(reportError(shown, { isJson: false, isDebug: false, command: "chat" }).text);
    const isKept = conversation.session !== null && hasErrorCode(error, "MODEL_FAILED", "CONTEXT_OVERFLOW");
    if (isKept) output.note("What you said is kept; /continue asks again.");
  }
}

async function greet(context: CommandContext, conversation: Conversation): Promise<void> {
  const { output } = context;
  const { store, session, ref, chosen } = conversation;
  const state = session === null ? null : await store.load(ref);
  const name = state === null ? "New session" : await shownName(store, state, context.signal);
  const folder = shownFolder(conversationFolder(context), context.host.userHome);
  await output.line({ text: name, style: "bold" }, { text: `  ${folder}  ${ref.key}`, style: "dim" });
  await output.line({ text: modelText(chosen), style: chosen.isOffline ? "yellow" : "dim" });
  for (const line of await forkNotice(context, conversation)) await output.line({ text: line, style: "yellow" });
  const restored = session === null ? null : restoredText(session);
  if (restored !== null) await output.line(restored);
  const unfinished = session === null ? null : unfinishedText(session);
  if (unfinished !== null) await output.line({ text: unfinished, style: "yellow" });
  if (session?.runningTurn != null)
    await output.line({ text: stillAnswering(session.runningTurn.owner), style: "yellow" });
  await output.line({ text: "/help lists the commands.", style: "dim" });
}

/** Prints how to resume, but only if the session holds messages. */
async function farewell({ output }: CommandContext, { store, ref }: Conversation, code: number): Promise<number> {
  const state = await store.load(ref);
  if (state === null || state.head.lastSeq === 0)
    await output.line({ text: "No messages, so nothing is saved.", style: "dim" });
  else await output.line(output.asTyped(`Saved. Resume: \`throughline chat --key ${shellWord(ref.key)}\``));
  return code;
}
