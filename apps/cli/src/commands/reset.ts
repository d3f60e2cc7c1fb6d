import {
  keptOnReset,
  noteArchiving,
  resetSession,
  resolveSession,
  systemClock,
  systemRandom,
} from "@throughline/core/internal";
import { ThroughlineError } from "@throughline/core";
import { forgetTypedLines } from "../chat/typed-lines.ts";
import type { CommandContext, CommandInput } from "../command.ts";
import { noteSpooledCalls } from "../server/spooled-calls.ts";
import { showSession } from "../show-session.ts";
import { waitForTurn } from "../wait-for-turn.ts";

interface ResetOptions {
  readonly bare?: boolean;
  readonly purge?: boolean;
}

export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const options = input.options as ResetOptions;
  const { scope, signal } = context;
  const store = await context.openStore("write");
  const old = await resolveSession(store, input.arguments[0] ?? "", scope, { isExact: true, signal });
  if (old.archived)
    throw new ThroughlineError("SESSION_ARCHIVED", `The session ${old.sessionId} is archived already.`, {
      outcome: "not-applied",
      details: { ...old.ref },
    });
  if (options.purge === true)
    await context.confirm(`Reset ${old.ref.key} and delete its ${old.head.lastSeq} records for good?`);
  await waitForTurn(store, old.ref, context);
  await noteArchiving(store, old.ref, systemClock);
  const state = await resetSession(store, old.ref, {
    random: systemRandom,
    ...(options.bare === true ? {} : { keep: keptOnReset }),
  });
  const archived = { ...old.ref, archiveId: old.sessionId };
  if (options.purge === true) await store.remove(archived, { purge: true });
  else
    context.output.note(
      `The old session is archived. To restore it: \`throughline restore --archive ${old.sessionId}\``,
    );
  await showSession(context, state, "reset");
  if (options.purge === true) {
    forgetTypedLines(context, old.ref.agentId);
    await noteSpooledCalls(context);
  }
  return 0;
}
