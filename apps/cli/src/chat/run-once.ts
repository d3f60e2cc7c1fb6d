import { hasErrorCode, ThroughlineError } from "@throughline/core";
import type { Turn } from "@throughline/session";
import type { CommandContext } from "../command.ts";
import { withRemedy } from "../error-report.ts";
import { percentOf } from "@throughline/core/internal";
import { checkpointWaitMs } from "./chat-waits.ts";
import type { Conversation } from "@throughline/agent/internal";
import { forkNotice } from "./fork-notice.ts";
import { sendDenied } from "./send-denied.ts";
import { modelText, unfinishedText } from "./greeting.ts";
import { createTurnPrinter } from "./turn-printer.ts";
import type { TurnPrinter } from "./turn-printer.ts";

const interruptedExitCode = 130;
const replacedRemedy = "Nothing was sent. Run the command again to continue in the new session.";

/** Prints the answer to stdout and everything else to stderr, so that a script can use the answer. */
export async function runOnce(
  context: CommandContext,
  conversation: Conversation,
  { text, whenBusy }: { readonly text: string; readonly whenBusy: "queue" | "reject" | "branch" | null },
): Promise<number> {
  const { host, output, signal } = context;
  const { chosen } = conversation;
  output.note(modelText(chosen));
  for (const line of await forkNotice(context, conversation)) output.note(line);
  const session = await conversation.open();
  const unfinished = unfinishedText(session);
  if (unfinished !== null) output.note(unfinished);
  const printer = createTurnPrinter(output, { isText: !output.isJson });
  conversation.listen(printer);
  const turn = await conversation
    .runTurn(text, { signal, whenBusy, onDelta: printer.onDelta })
    .catch((error: unknown) => {
      throw hasErrorCode(error, "SESSION_REPLACED") ? withRemedy(error, replacedRemedy) : error;
    })
    .finally(() => printer.finish());
  if (output.isJson) await output.object(turnObject(turn, conversation, printer));
  else if (turn.outcome === "step-limit") output.note("The turn stopped at its limit of model calls.");
  await output.flush();
  // A script may run one process for each prompt. If a checkpoint ended with the process, such a session would never
  // get one.
  await conversation.settle({
    waitMs: checkpointWaitMs.once,
    signal,
    onWaiting: () => output.progress("making a checkpoint"),
  });
  await printer.finish();
  if (turn.denial !== null) throw sendDenied(conversation, turn.denial);
  if (turn.outcome !== "aborted") return 0;
  if (host.signal.aborted) return interruptedExitCode;
  await output.flush();
  throw new ThroughlineError("ABORTED", "The turn was ended before the answer was complete; what had arrived is kept.");
}

function turnObject(
  turn: Turn,
  { session, chosen }: Conversation,
  { toolLines, events }: TurnPrinter,
): { readonly kind: "turn"; readonly [field: string]: unknown } {
  const { tokens, source, lowTokens, highTokens, windowTokens } = turn.gauge;
  return {
    kind: "turn",
    key: turn.ref.key,
    sessionId: session?.sessionId ?? null,
    turnId: turn.turnId,
    outcome: turn.outcome,
    stopReason: turn.stopReason,
    model: chosen.name,
    text: turn.text,
    usage: turn.usage,
    gauge: { tokens, source, lowTokens, highTokens, windowTokens, percent: percentOf(tokens, windowTokens) },
    calls: turn.calls.length,
    tools: toolLines.map(({ name, isError, sizeBytes }) => ({ name, isError, sizeBytes })),
    events: events.map(({ name, message, data }) => ({ name, message, data })),
  };
}
