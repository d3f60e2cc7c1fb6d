import type { ListedCheckpoint, NoCheckpointReason } from "@throughline/checkpoint/internal";
import type { Output } from "../output.ts";
import { timeText } from "../time-text.ts";

export async function printCheckpoint(output: Output, checkpoint: ListedCheckpoint): Promise<void> {
  const { seq, coversToSeq, tokensAtCheckpoint, messageCountAtCheckpoint, model, atMs } = checkpoint;
  const covers = coversToSeq === null ? "" : `covers to #${coversToSeq}, `;
  await output.line({ text: `#${seq} checkpoint`, style: "cyan" }, { text: `  ${timeText(atMs)}`, style: "dim" });
  await output.paragraph(
    `${covers}${messageCountAtCheckpoint} messages, ~${tokensAtCheckpoint.toLocaleString("en")} tokens${model === null ? "" : `, ${model}`}`,
    { style: "dim" },
  );
  await output.paragraph(checkpoint.summary);
  for (const [name, items] of [
    ["topics", checkpoint.topics],
    ["decisions", checkpoint.keyDecisions],
    ["open questions", checkpoint.openQuestions],
  ] as const) {
    if (items.length > 0) await output.paragraph(`${name}: ${items.join("; ")}`, { indent: "  " });
  }
}

export function noCheckpointText(reason: NoCheckpointReason): string {
  switch (reason) {
    case "nothing-new":
      return "There are no new messages since the last checkpoint or compaction.";
    case "in-the-making":
      return "Another process is writing one.";
    case "no-writers":
      return "The configuration names no model that could write one.";
    case "not-due":
      return "Another process wrote one first.";
    case "overtaken":
      return "It took too long, and another process took it over.";
    case "reset":
      return "The session was reset while it was written.";
  }
}
