import { createSession, systemRandom } from "@throughline/core/internal";
import type { CommandContext, CommandInput } from "../command.ts";
import { conversationFolder } from "@throughline/agent/internal";
import { showSession } from "../show-session.ts";

export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const label = input.arguments.join(" ").trim();
  const key = input.options["key"] as string | undefined;
  const store = await context.openStore("write");
  const state = await createSession(store, context.scope, {
    label: label === "" ? null : label,
    key: key ?? null,
    sessionId: systemRandom.uuid(),
    entry: { cwd: conversationFolder(context) },
    signal: context.signal,
  });
  await showSession(context, state, "new session");
  return 0;
}
