import { forkSession, hasErrorCode, sessionRef, updateEntry } from "@throughline/core";
import { systemRandom } from "@throughline/core/node";
import type { CommandContext, CommandInput } from "../command.ts";
import { findRecord, resolveSession } from "@throughline/queries";
import { freeRef, sessionExists, sessionLabel } from "@throughline/queries/internal";
import { showSession } from "../show-session.ts";

interface ForkOptions {
  readonly at?: string;
  readonly key?: string;
  readonly label?: string;
}

/** A new session that begins with the records of another; the other stays as it is. */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const options = input.options as ForkOptions;
  const { output, scope, signal } = context;
  const store = await context.openStore("write");
  const origin = await resolveSession(store, input.arguments[0] ?? "", scope, { isExact: true, signal });
  const at = options.at === undefined ? null : await findRecord(store, origin.ref, options.at, signal);
  const { namespace, agentId, key } = origin.ref;
  const target =
    options.key === undefined
      ? await freeRef(store, { namespace, agentId, key: `${key}-fork` }, signal)
      : sessionRef({ key: options.key, namespace, agentId });
  const label = options.label ?? sessionLabel(origin.entry);
  const state = await forkSession(store, origin.ref, target, {
    sessionId: systemRandom.uuid(),
    signal,
    ...(at === null ? {} : { atSeq: at.seq }),
  }).catch((error: unknown) => {
    throw hasErrorCode(error, "REVISION_CONFLICT") ? sessionExists(target) : error;
  });
  const named = label === null ? state : await updateEntry(store, target, (entry) => ({ ...entry, label }));
  if (store.fork === undefined) output.note("This store shares no records between sessions; they were copied.");
  await showSession(context, named, `fork of ${key}`);
  return 0;
}
