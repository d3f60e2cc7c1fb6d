import { Buffer } from "node:buffer";
import { countReply } from "./count-tokens.ts";
import { replyParts } from "./simulated-reply.ts";
import type { AnswerReply, ReplyPart } from "./simulated-reply.ts";

function cutText(text: string, tokens: number): string {
  // A character that is cut in two would become U+FFFD. With `stream` the decoder drops the incomplete rest.
  return new TextDecoder().decode(Buffer.from(text).subarray(0, tokens * 4), { stream: true });
}

/** Cuts the reply to `budgetTokens`, because a model that reaches the end of its window stops there. */
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
