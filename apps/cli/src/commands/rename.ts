import { mergeEntry, sessionRef, updateEntry } from "@throughline/core";
import type { SessionState } from "@throughline/core";
import { systemClock } from "@throughline/core/node";
import type { CommandContext, CommandInput } from "../command.ts";
import { usageError } from "../error-report.ts";
import { resolveSession } from "@throughline/queries";
import { showSession } from "../show-session.ts";
import { waitForTurn } from "../wait-for-turn.ts";

/** Gives a session another key, another label, or both. Its id and its records stay. */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const [text = "", newKey] = input.arguments;
  const label = input.options["label"] as string | undefined;
  if (newKey === undefined && label === undefined) throw usageError("rename needs a new key, a --label, or both.");
  const { scope, signal } = context;
  const store = await context.openStore("write");
  let state: SessionState = await resolveSession(store, text, scope, { isExact: true, signal });
  if (newKey !== undefined) {
    // The door: a key that cannot be one, or names another agent, is refused before anything is moved.
    sessionRef({ key: newKey, agentId: state.ref.agentId, namespace: state.ref.namespace });
    await waitForTurn(store, state.ref, context);
    state = await store.move(state.ref, { kind: "rename", key: newKey });
  }
  if (label !== undefined) {
    const patch = { label: label === "" ? undefined : label };
    state = await updateEntry(store, state.ref, (entry) => mergeEntry(entry, patch, { nowMs: systemClock.nowMs() }));
  }
  await showSession(context, state, "renamed");
  return 0;
}
