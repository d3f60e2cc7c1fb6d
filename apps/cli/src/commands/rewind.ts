import { findRecord, loadExisting, resolveSession, shellWord, systemClock } from "@throughline/core/internal";
import { moveStoredHead, readBranchPlace, rewound } from "@throughline/session/internal";
import type { CommandContext, CommandInput } from "../command.ts";
import { counted } from "../counted.ts";
import { usageError } from "../error-report.ts";
import { showSession } from "../show-session.ts";
import { waitForTurn } from "../wait-for-turn.ts";

export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const to = input.options["to"] as string | undefined;
  if (to === undefined) throw usageError("rewind needs --to RECORD: an id, a number, or start.");
  const { output, scope, signal } = context;
  const store = await context.openStore("write");
  const { ref } = await resolveSession(store, input.arguments[0] ?? "", scope, { isExact: true, signal });
  await waitForTurn(store, ref, context);
  const targetId = to === "start" ? null : (await findRecord(store, ref, to, signal)).id;
  const place = await readBranchPlace({ store, ref, clock: systemClock, signal });
  const leftIds = await moveStoredHead(place, rewound(targetId));
  output.note(
    `${counted(leftIds.length, "record")} left behind; \`throughline show ${shellWord(ref.key)} --all-branches\` still shows them, and rewind leads back.`,
  );
  await showSession(context, await loadExisting(store, ref), `head at ${targetId ?? "the start"}`);
  return 0;
}
