import { openConversation } from "@throughline/agent/internal";
import { ThroughlineError } from "@throughline/core";
import type { SessionRef, SessionStore } from "@throughline/core";
import type { AgentSession } from "@throughline/session/whole-turn";
import { modelText } from "../chat/greeting.ts";
import type { CommandContext, CommandInput } from "../command.ts";
import { eventNote, eventObject } from "../chat/event-note.ts";
import { resolveSession } from "@throughline/core/internal";
import { waitForTurn } from "../wait-for-turn.ts";

export interface SessionWork {
  readonly store: SessionStore;
  readonly ref: SessionRef;
  readonly session: AgentSession;
  readonly stop: () => Promise<void>;
}

/**
 * Opens the session that a command names for work between turns, with the model that would answer in it. It waits for a
 * running turn. Events go to stderr, except the `reported` ones, which the command's output repeats.
 * @throws {ThroughlineError} SESSION_NOT_FOUND, SESSION_ARCHIVED, SESSION_BUSY, and errors of opening the session
 */
export async function inSession(
  context: CommandContext,
  input: CommandInput,
  { isDryRun, reported = new Set() }: { readonly isDryRun: boolean; readonly reported?: ReadonlySet<string> },
  work: (work: SessionWork) => Promise<number>,
): Promise<number> {
  const { output, scope, signal } = context;
  const store = await context.openStore(isDryRun ? "read" : "write");
  const { ref, archived, sessionId } = await resolveSession(store, input.arguments[0] ?? "", scope, {
    isExact: !isDryRun,
    signal,
  });
  if (archived) {
    throw new ThroughlineError("SESSION_ARCHIVED", `The session ${sessionId} is archived: it stays as it is.`, {
      outcome: "not-applied",
      details: { ...ref },
      remedy: `Restore it first: \`throughline restore --archive ${sessionId}\`.`,
    });
  }
  if (!isDryRun) await waitForTurn(store, ref, context);
  await using conversation = await openConversation(
    context,
    store,
    { ref, origin: null },
    {
      hasTools: false,
      onNote: (message) => output.note(message),
    },
  );
  output.note(modelText(conversation.chosen));
  conversation.listen({
    onEvent: (event) => {
      const note = reported.has(event.name) && !output.isJson ? null : eventNote(event);
      if (note !== null) output.event(eventObject(event, note));
    },
    onNote: (message) => output.note(message),
  });
  const session = await conversation.open();
  return await work({ store, ref, session, stop: () => conversation.stop() });
}
