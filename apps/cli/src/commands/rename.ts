import { sessionRef } from "@throughline/core";
import type { CommandContext, CommandInput } from "../command.ts";
import { usageError } from "../error-report.ts";
import { renameSession, resolveSession } from "@throughline/core/internal";
import { showSession } from "../show-session.ts";
import { waitOptions } from "../wait-for-turn.ts";

export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const [text = "", newKey] = input.arguments;
  const label = input.options["label"] as string | undefined;
  if (newKey === undefined && label === undefined) throw usageError("rename needs a new key, a --label, or both.");
  const { scope, signal } = context;
  const store = await context.openStore("write");
  const current = await resolveSession(store, text, scope, { isExact: true, signal });
  const { agentId, namespace } = current.ref;
  const state = await renameSession(store, current, {
    ...waitOptions(context),
    // An invalid key, or one of another agent, is refused before the session is moved.
    ...(newKey === undefined ? {} : { target: sessionRef({ key: newKey, agentId, namespace }) }),
    ...(label === undefined ? {} : { label }),
  });
  await showSession(context, state, "renamed");
  return 0;
}
