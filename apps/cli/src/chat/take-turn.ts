import type { AgentListener, Conversation, TurnContent } from "@throughline/agent/internal";
import type { Turn } from "@throughline/session";
import type { CommandContext } from "../command.ts";
import { terminalSafeLine } from "../terminal-safe.ts";
import type { ChatView } from "./chat-view.ts";
import { eventNote } from "./event-note.ts";
import type { NamedFiles } from "./files/named-files.ts";
import { sendDenied } from "./send-denied.ts";
import { Steering } from "./steering.ts";
import { createTurnPrinter, type TurnPrinter } from "./turn-printer.ts";

interface TurnOptions {
  readonly context: CommandContext;
  readonly conversation: Conversation;
  readonly view: ChatView;
  readonly files: NamedFiles;
  readonly whenBusy: "queue" | "reject" | "branch" | null;
}

/** Runs a turn, and those of the texts that were sent into it too late. @param text null resumes the last turn */
export async function takeTurn(
  { context, conversation, view, files, whenBusy }: TurnOptions,
  text: string | null,
): Promise<void> {
  const say = (note: string): void => view.say(terminalSafeLine(note));
  const contentOf = (said: string): Promise<TurnContent> =>
    files.contentOf(said, say).catch((error: unknown) => {
      view.giveBack(said);
      throw error;
    });
  const content = text === null ? null : await contentOf(text);
  const cancel = new AbortController();
  const signal = AbortSignal.any([context.signal, cancel.signal]);
  const printer = createTurnPrinter(context.output, { writer: view.turnWriter() });
  const { onDelta } = printer;
  let isOver = false;
  const steering = new Steering({
    run: async (said, taken) =>
      conversation.runTurn(await files.contentOf(said, say), {
        signal: AbortSignal.any([signal, taken]),
        whenBusy: null,
        queue: "steer",
        onDelta,
      }),
    onTaken: (said) => printer.say(said, isOver ? "" : " (steered)"),
    onBack: (said) => view.giveBack(said),
  });
  view.steerBy(steering);
  view.onInterrupt(() => cancel.abort());
  const before = conversation.ref.key;
  conversation.listen(seenBy(printer, steering));
  try {
    const turn = await conversation.runTurn(content, { signal, whenBusy, onDelta }).finally(async () => {
      isOver = true;
      await steering.settle().finally(() => printer.finish());
    });
    await reportEnd(context, conversation, turn, before);
  } finally {
    view.steerBy(null);
    view.onInterrupt(null);
    conversation.listen(besideTurns(view));
  }
}

function seenBy(printer: TurnPrinter, steering: Steering): AgentListener {
  return {
    onEvent: (event) => {
      printer.onEvent(event);
      steering.see(event);
    },
    onNote: printer.onNote,
  };
}

async function reportEnd(
  { output }: CommandContext,
  conversation: Conversation,
  turn: Turn,
  keyBefore: string,
): Promise<void> {
  if (turn.outcome === "aborted") await output.line({ text: "(canceled; what had arrived is kept)", style: "yellow" });
  if (turn.denial !== null) {
    const { message, remedy } = sendDenied(conversation, turn.denial);
    await output.line({ text: `(${message} ${remedy} Then /continue asks the model.)`, style: "yellow" });
  }
  if (turn.outcome === "step-limit")
    await output.line({ text: "(stopped at the limit of model calls; /continue resumes)", style: "yellow" });
  if (turn.outcome === "waiting")
    await output.line({ text: "(tool calls still wait for a decision)", style: "yellow" });
  if (conversation.ref.key !== keyBefore)
    await output.line({ text: `(you are in ${conversation.ref.key} now)`, style: "dim" });
}

/** Shows what happens in a session while no turn of this process runs. */
export function besideTurns(view: ChatView, silent: ReadonlySet<string> = new Set()): AgentListener {
  return {
    onEvent: (event) => {
      const note = silent.has(event.name) ? null : eventNote(event);
      if (note !== null) view.say(terminalSafeLine(`(${note})`));
    },
    onNote: (message) => view.say(terminalSafeLine(`(${message})`)),
  };
}
