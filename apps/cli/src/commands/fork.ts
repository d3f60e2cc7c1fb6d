import { sessionRef } from "@throughline/core";
import { resolveSession, sessionProgram } from "@throughline/core/internal";
import type { CommandContext, CommandInput } from "../command.ts";
import { conversationFolder, forkConversation } from "@throughline/agent/internal";
import { showSession } from "../show-session.ts";

interface ForkOptions {
  readonly at?: string;
  readonly key?: string;
  readonly label?: string;
}

export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const { at, key, label } = input.options as ForkOptions;
  const { output, scope, signal } = context;
  const store = await context.openStore("write");
  const origin = await resolveSession(store, input.arguments[0] ?? "", scope, { isExact: true, signal });
  const { namespace, agentId } = origin.ref;
  // A fork of an import counts as an own session, so it gets this folder and `chat` resumes it here.
  const own = sessionProgram(origin.entry) === null ? origin.entry.cwd : undefined;
  const forked = await forkConversation(store, origin, {
    folder: own ?? conversationFolder(context),
    signal,
    ...(at === undefined ? {} : { at }),
    ...(key === undefined ? {} : { target: sessionRef({ key, namespace, agentId }) }),
    ...(label === undefined ? {} : { label }),
  });
  if (store.fork === undefined) output.note("This store shares no records between sessions; they were copied.");
  await showSession(context, forked, `fork of ${origin.ref.key}`);
  return 0;
}
