import { Buffer } from "node:buffer";
import { countReply } from "./count-tokens.ts";
import { replyParts } from "./simulated-reply.ts";
import type { AnswerReply, ReplyPart } from "./simulated-reply.ts";

function cutText(text: string, tokens: number): string {
  // A character cut in two would come out as U+FFFD; `fatal: false` with `stream` leaves the broken rest out.
  return new TextDecoder().decode(Buffer.from(text).subarray(0, tokens * 4), { stream: true });
}

/** The reply as far as it fits into `budgetTokens`: a model that runs into its window stops where it is. */
export function fitReply(reply: AnswerReply, budgetTokens: number): AnswerReply {
  if (countReply(reply).outputTokens <= budgetTokens) return reply;
  const kept: ReplyPart[] = [];
  let left = budgetTokens;
  for (const part of replyParts(reply)) {
    const cost = countReply({ kind: "answer", content: [part] }).outputTokens;
    if (cost <= left) kept.push(part);
    else if (part.type === "text" && left > 0) kept.push({ type: "text", text: cutText(part.text, left) });
    if (cost > left) break;
    left -= cost;
  }
  return { ...reply, content: kept, stop: "context-window", usage: { ...reply.usage, outputTokens: budgetTokens } };
}
