import { hasErrorCode } from "@throughline/core";
import { compactionRow } from "@throughline/http-api/internal/compaction-json";
import { compactionReports, compactionText } from "../agent/compaction-report.ts";
import { noCheckpointText, printCheckpoint } from "../agent/checkpoint-report.ts";
import { causeText } from "@throughline/core/internal";
import { busyWith } from "../wait-for-turn.ts";
import type { ReplContext } from "./repl-context.ts";

const shownCheckpoints = 10;

export async function compactCurrent(repl: ReplContext): Promise<void> {
  const { output } = repl.context;
  if (repl.conversation.session === null) return nothingYet(output);
  await repl.reportedAlone(compactionReports, () => repl.interruptible((signal) => compactNow(repl, signal)));
}

async function compactNow({ context: { output }, conversation }: ReplContext, signal: AbortSignal): Promise<void> {
  const session = await conversation.open();
  const result = await session.compact({ signal });
  if (result.kind === "busy") throw busyWith(result.turn);
  const { key, sessionId, ref } = session;
  const row = await compactionRow(conversation.store, ref, { key, sessionId }, result);
  const messages = result.kind === "nothing" ? result.messages : null;
  await output.line({
    text: compactionText(row, messages),
    style: row.state === "compacted" ? "green" : "yellow",
  });
}

export async function checkpointCurrent({ context: { output }, conversation }: ReplContext): Promise<void> {
  if (conversation.session === null) return nothingYet(output);
  const session = await conversation.open();
  const result = await session.checkpoint();
  if (result.kind === "failed") {
    if (hasErrorCode(result.cause, "ABORTED")) throw result.cause;
    await output.line({ text: `No checkpoint was made: ${causeText(result.cause)}`, style: "red" });
    return;
  }
  if (result.kind === "nothing") {
    await output.line({ text: `No checkpoint was made. ${noCheckpointText(result.reason)}`, style: "yellow" });
    return;
  }
  const { checkpoints } = await session.checkpoints();
  const made = checkpoints.find(({ id }) => id === result.recordId);
  if (made !== undefined) await printCheckpoint(output, made);
}

export async function listTheCheckpoints({ context, conversation }: ReplContext): Promise<void> {
  const { output, signal } = context;
  if (conversation.session === null) return nothingYet(output);
  const session = await conversation.open();
  const { checkpoints, status } = await session.checkpoints({ signal });
  for (const checkpoint of checkpoints.slice(-shownCheckpoints)) await printCheckpoint(output, checkpoint);
  if (checkpoints.length === 0) await output.line("No checkpoints yet.");
  if (checkpoints.length > shownCheckpoints)
    await output.line({ text: `The newest ${shownCheckpoints} of ${checkpoints.length}.`, style: "dim" });
  if (status.running !== null)
    await output.line({ text: `One is being made by ${status.running.owner}.`, style: "dim" });
}

async function nothingYet(output: ReplContext["context"]["output"]): Promise<void> {
  await output.line("There are no messages yet.");
}
