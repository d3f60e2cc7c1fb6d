import { existsSync } from "node:fs";
import { basename } from "node:path";
import { conversationFolder, readAllowedEdits } from "@throughline/agent/internal";
import type { Conversation } from "@throughline/agent/internal";
import { settingOf } from "@throughline/config/internal";
import { hasErrorCode } from "@throughline/core";
import { withinMemory } from "@throughline/core/internal/node";
import type { StoredRecord } from "@throughline/core";
import { readTail } from "@throughline/history/internal";
import type { AgentSession } from "@throughline/session/whole-turn";
import { causeText, nearestName, shellWord, stillAnswering } from "@throughline/core/internal";
import type { CommandContext } from "../command.ts";
import { reportError, withRemedy } from "../error-report.ts";
import { shownFolder, shownName } from "../session-names.ts";
import { SessionCost } from "../usage/session-cost.ts";
import { checkpointWaitMs } from "./chat-waits.ts";
import { forkNotice } from "./fork-notice.ts";
import { modelText, restoredText, unfinishedText } from "./greeting.ts";
import { editText } from "./files/edit-text.ts";
import { findCompletion } from "./files/find-completion.ts";
import { listFiles } from "./files/list-files.ts";
import { NamedFiles } from "./files/named-files.ts";
import { createInputHistory } from "./input-history.ts";
import { typedLinesPath } from "./typed-lines.ts";
import { canMoveCursor, type ChatView, type Submission } from "./chat-view.ts";
import { PlainView } from "./plain-view.ts";
import { replCommands } from "./repl-commands.ts";
import type { ReplContext } from "./repl-context.ts";
import type { LiveTerminal } from "./screen/live-terminal.ts";
import { LiveView } from "./screen/live-view.ts";
import { besideTurns, takeTurn } from "./take-turn.ts";
import { watchElsewhere } from "./watch-elsewhere.ts";

export interface ReplOptions {
  /** Is null where rows cannot be painted again. */
  readonly terminal: LiveTerminal | null;
  readonly whenBusy: "queue" | "reject" | "branch" | null;
  /** Receives the view before the first turn. */
  readonly onView: (view: ChatView) => void;
}

/** No program can know whether a screen reader runs. */
const screenReaderHint = 'Screen reader? Start with --plain, or set "plain": true in config.json.';

const leaveWords: ReadonlySet<string> = new Set(["/quit", "quit", "exit", "/exit"]);

export async function runRepl(
  context: CommandContext,
  conversation: Conversation,
  options: ReplOptions,
): Promise<number> {
  const { host, output, scope } = context;
  // With encrypted stores no file keeps what a person types.
  const isPlain = settingOf(context.settings, "encryption.keyring") === null;
  const path = isPlain ? typedLinesPath(context, scope.agentId) : null;
  const isFirst = path !== null && !existsSync(path);
  const history = createInputHistory(path, (error) =>
    output.note(`The history of inputs is not kept: ${causeText(error)}`),
  );
  const find = findCompletion(replCommands, () => listFiles(conversationFolder(context)), { context, conversation });
  const { terminal } = options;
  const view =
    terminal === null
      ? new PlainView(host, { output, history, find })
      : new LiveView(host, { terminal, history, find, edit: (text) => editText(context, text) });
  options.onView(view);
  const repl = replContext(context, conversation, view, options);
  const cost = new SessionCost(context, conversation.store);
  conversation.listen(besideTurns(view));
  try {
    await greet(context, conversation);
    if (isFirst && canMoveCursor(context)) await output.line({ text: screenReaderHint, style: "dim" });
    await output.flush();
    await answered(context, conversation, () => redraw(context, conversation, view));
    for (;;) {
      await answered(context, conversation, () => showStatus(context, conversation, view, cost));
      await output.flush();
      const submission = await readWatching(conversation, view);
      if (submission.kind === "leave") return await farewell(context, conversation, submission.code);
      const text = submission.text;
      if (text.trim() === "") continue;
      if (leaveWords.has(text.trim())) return await farewell(context, conversation, 0);
      await answered(context, conversation, () => act(repl, text));
    }
  } finally {
    await output.flush();
    view.close();
    conversation.listen({ onEvent: () => {}, onNote: () => {} });
    await conversation.settle({
      waitMs: checkpointWaitMs.person,
      signal: host.signal,
      onWaiting: () => output.note("A checkpoint is being made; Ctrl-C leaves at once."),
    });
    await cost.close();
  }
}

/** Waits for the person, and says when another program wrote into the session meanwhile. */
async function readWatching({ store, session }: Conversation, view: ChatView): Promise<Submission> {
  if (session === null) return view.read();
  const { ref, head } = session;
  const end = watchElsewhere({ store, ref, afterSeq: head.lastSeq }, () => view.showChanged());
  try {
    return await view.read();
  } finally {
    await end();
  }
}

function replContext(
  context: CommandContext,
  conversation: Conversation,
  view: ChatView,
  options: ReplOptions,
): ReplContext {
  const files = new NamedFiles(context, conversation);
  const { whenBusy } = options;
  const runTurn = (said: string | null): Promise<void> =>
    takeTurn({ context, conversation, view, files, whenBusy }, said);
  const interruptible: ReplContext["interruptible"] = async (work) => {
    const cancel = new AbortController();
    view.onInterrupt(() => cancel.abort());
    try {
      await work(AbortSignal.any([context.signal, cancel.signal]));
    } finally {
      view.onInterrupt(null);
    }
  };
  const givenAway: ReplContext["givenAway"] = async (work) => {
    await context.output.flush();
    view.suspend();
    try {
      return await work();
    } finally {
      await context.output.flush();
      view.resume();
    }
  };
  const reportedAlone: ReplContext["reportedAlone"] = async (names, work) => {
    conversation.listen(besideTurns(view, names));
    try {
      await work();
    } finally {
      conversation.listen(besideTurns(view));
    }
  };
  const showEnd = (): Promise<void> => redraw(context, conversation, view);
  const giveBack = (text: string): void => view.giveBack(text);
  return { context, conversation, runTurn, giveBack, showEnd, givenAway, interruptible, reportedAlone };
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

async function showStatus(
  context: CommandContext,
  conversation: Conversation,
  view: ChatView,
  cost: SessionCost,
): Promise<void> {
  const { store, session, ref, chosen } = conversation;
  const state = session === null ? null : await store.load(ref);
  const ownFolder = conversationFolder(context);
  const isAllowed = state !== null && readAllowedEdits(state.entry, ownFolder) !== null;
  const changed = await conversation.changedProjectFile();
  const status = {
    title: state === null ? "New session" : await shownName(store, state, context.signal),
    model: chosen.isOffline ? "offline rules" : chosen.name,
    percent: session === null ? null : await fullness(session),
    folder: shownFolder(ownFolder, context.host.userHome),
    states: [
      ...(isAllowed ? ["edits: allowed"] : []),
      ...(changed === null ? [] : [`${basename(changed)} changed: /reload`]),
    ],
  };
  view.showStatus({ ...status, cost: state === null ? null : cost.last(state.sessionId) });
  if (state !== null && state.head.lastSeq > 0 && canMoveCursor(context))
    cost.count(state, (text) => view.showStatus({ ...status, cost: text }));
}

async function fullness(session: AgentSession): Promise<number | null> {
  try {
    return (await session.status()).gauge.displayPercent;
  } catch (error) {
    // The next command reports it, with what to do.
    if (hasErrorCode(error, "SESSION_REPLACED")) return null;
    throw error;
  }
}

/** Shows where the conversation stands; of an import, what its fork begins with. */
async function redraw(
  { signal }: CommandContext,
  { store, session, origin }: Conversation,
  view: ChatView,
): Promise<void> {
  const source = session ?? origin;
  if (source === null || source.head.lastSeq === 0) return;
  const { head, ref } = source;
  const selection = { isAll: false, isAllBranches: false, afterSeq: 0, role: shownRole, tail: mostRedrawn };
  const records = await readTail(withinMemory(store), ref, { head, selection, roleOf }, signal);
  await view.showRecords(records, Math.max(0, (records[0]?.seq ?? 1) - 1));
}

const mostRedrawn = 40;
const shownRole = "shown";

function roleOf({ type, side }: StoredRecord): string | null {
  return type === "message" && !side ? shownRole : null;
}

const replacedRemedy =
  "Nothing was sent. /accept continues in the new session; /recover continues in a copy of the earlier one.";

/** A failure ends the command or turn and not the conversation. */
async function answered(
  { output }: CommandContext,
  conversation: Conversation,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work();
  } catch (error) {
    await output.flush();
    const shown = hasErrorCode(error, "SESSION_REPLACED") ? withRemedy(error, replacedRemedy) : error;
    output.problem(reportError(shown, { isJson: false, isDebug: false, command: "chat" }).text);
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
  await output.paragraph(modelText(chosen), { style: chosen.isOffline ? "yellow" : "dim" });
  const instructions = conversation.projectFiles.map(({ path }) => shownFolder(path, context.host.userHome));
  if (instructions.length > 0) await output.paragraph(`instructions: ${instructions.join(", ")}`, { style: "dim" });
  for (const line of await forkNotice(context, conversation)) await output.paragraph(line, { style: "yellow" });
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
