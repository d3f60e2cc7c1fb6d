import { settingOf } from "@throughline/config/internal";
import { endSession, hasErrorCode } from "@throughline/core";
import {
  createSession,
  keptOnReset,
  listSessions,
  noteArchiving,
  resetSession,
  resolveSession,
  sessionProgram,
  systemClock,
  systemRandom,
} from "@throughline/core/internal";
import type { SessionState } from "@throughline/core";
import { shownFolder, shownName, shownProgram } from "../session-names.ts";
import { ageText } from "../time-text.ts";
import { waitOptions, waitForTurn } from "../wait-for-turn.ts";
import type { AgentSession } from "@throughline/session/whole-turn";
import { forkNotice } from "./fork-notice.ts";
import { restoredText, unfinishedText } from "./greeting.ts";
import type { ReplContext } from "./repl-context.ts";
import { continued, conversationFolder, type StartingSession } from "@throughline/agent/internal";
import { chooseStart } from "../picker/choose-start.ts";

/** `throughline sessions` lists all of them, so the list here stays short. */
const mostListed = 50;

/** Handles `/new [label]`; with the setting `newResets` it resets the current session instead. */
export async function newSession(repl: ReplContext, label: string): Promise<void> {
  const { context, conversation } = repl;
  const { output, scope, settings, signal } = context;
  if (settingOf(settings, "newResets") === true) return resetCurrent(repl);
  const state = await createSession(conversation.store, scope, {
    label: label === "" ? null : label,
    key: null,
    sessionId: systemRandom.uuid(),
    entry: { cwd: conversationFolder(context) },
    signal,
  });
  await conversation.switchTo({ ref: state.ref, origin: null });
  await output.line("New session ", { text: state.ref.key, style: "bold" }, ` (id ${state.sessionId})`);
}

export async function listTheSessions({ context, conversation }: ReplContext): Promise<void> {
  const { output, scope, signal } = context;
  const rows: (readonly string[])[] = [];
  const nowMs = Date.now();
  let count = 0;
  const query = { namespace: scope.namespace, agentId: scope.agentId, limit: mostListed, signal };
  for await (const state of listSessions(conversation.store, query)) {
    count += 1;
    if (count > mostListed) break;
    const { ref, entry, messageCount, updatedAtMs } = state;
    rows.push([
      ref.key === conversation.ref.key ? "*" : " ",
      await shownName(conversation.store, state, signal),
      shownProgram(sessionProgram(entry)),
      shownFolder(entry.cwd, context.host.userHome),
      String(messageCount),
      ageText(updatedAtMs, nowMs),
      ref.key,
    ]);
  }
  if (count === 0) await output.line("No sessions yet: this one is made for its first word.");
  else
    await output.table(
      [
        { title: " " },
        { title: "NAME", least: 26, cut: "end" },
        { title: "PROGRAM", rank: 1, least: 11, cut: "end" },
        { title: "FOLDER", rank: 2, least: 12, cut: "start" },
        { title: "MESSAGES", align: "right", rank: 1 },
        { title: "LAST", align: "right" },
        { title: "KEY", least: 8 },
      ],
      rows,
    );
  if (count > mostListed)
    await output.line({ text: `The newest ${mostListed}; \`throughline sessions\` lists all.`, style: "dim" });
}

/** Handles `/resume`, and `/switch` without a name: the picker. */
export async function resumeSession(repl: ReplContext): Promise<void> {
  const { context, conversation } = repl;
  const chosen = await repl.givenAway(() => chooseStart(context, conversation.store, { escape: "back" }));
  if (chosen.kind === "new") await newSession(repl, "");
  if (chosen.kind === "start") await switchTo(repl, chosen.start);
}

/** Handles `/switch`. If several sessions match, they are listed and nothing changes. */
export async function switchSession(repl: ReplContext, text: string): Promise<void> {
  if (text === "") return resumeSession(repl);
  const { context, conversation } = repl;
  const { scope, signal } = context;
  const state = await found(context, () => resolveSession(conversation.store, text, scope, { signal }));
  if (state !== null) await switchTo(repl, await continued(context, conversation.store, state));
}

async function switchTo({ context, conversation }: ReplContext, start: StartingSession): Promise<void> {
  const { output } = context;
  const session = await conversation.switchTo(start);
  await output.line("Switched to ", { text: conversation.ref.key, style: "bold" }, idText(session));
  for (const line of await forkNotice(context, conversation)) await output.line({ text: line, style: "yellow" });
  const restored = session === null ? null : restoredText(session);
  if (restored !== null) await output.line(restored);
  const unfinished = session === null ? null : unfinishedText(session);
  if (unfinished !== null) await output.line({ text: unfinished, style: "yellow" });
}

function idText(session: AgentSession | null): string {
  return session === null ? "  (new)" : ` (id ${session.sessionId})`;
}

/** Handles `/delete`. The current session and an agent's main session cannot be archived here. */
export async function deleteSession({ context, conversation }: ReplContext, text: string): Promise<void> {
  const { output, scope, signal } = context;
  const { store } = conversation;
  const state = await found(context, () => resolveSession(store, text, scope, { isExact: true, signal }));
  if (state === null) return;
  if (state.ref.key === conversation.ref.key && !state.archived) {
    await output.line({
      text: "This is the current session; switch to another one first, or /reset it.",
      style: "red",
    });
    return;
  }
  await endSession(store, state.ref, waitOptions(context));
  await output.line(
    output.asTyped(`Archived ${state.ref.key}. Restore it: \`throughline restore --archive ${state.sessionId}\``),
  );
}

export async function resetCurrent({ context, conversation }: ReplContext): Promise<void> {
  const { output } = context;
  const { store, ref } = conversation;
  const old = await store.load(ref);
  if (old === null || old.head.lastSeq === 0) {
    await output.line("There is nothing to reset yet.");
    return;
  }
  await waitForTurn(store, ref, context);
  await noteArchiving(store, ref, systemClock);
  const fresh = await resetSession(store, ref, { random: systemRandom, keep: keptOnReset });
  await conversation.switchTo({ ref, origin: null });
  await output.line(`Reset. The new id is ${fresh.sessionId}; the old session is archived as ${old.sessionId}.`);
}

/** Returns null after printing why no session matches. */
async function found(
  { output }: ReplContext["context"],
  look: () => Promise<SessionState>,
): Promise<SessionState | null> {
  try {
    return await look();
  } catch (error) {
    if (!hasErrorCode(error, "SESSION_NOT_FOUND", "SESSION_AMBIGUOUS")) throw error;
    await output.line({ text: error.message, style: "red" });
    return null;
  }
}
