import { contextLine, type Gauge } from "@throughline/tokens";
import { decideFlush } from "@throughline/compaction/internal";
import type { SystemPrompt } from "../session-options.ts";
import { keyOf } from "./turn-memory.ts";
import type { WholeTurnParts } from "./whole-turn-parts.ts";

/**
 * Adds the line about the size of the context and the text of a flush to the system prompt. Within a turn the figures
 * stay the same, because a provider cannot cache a prompt that changes with every call.
 */
export function systemText(
  base: SystemPrompt,
  parts: Pick<WholeTurnParts, "compactor" | "flush" | "clock">,
  showContextLine: boolean,
): SystemPrompt {
  if (parts.flush === null && !showContextLine) return base;
  const said = new Map<string, { readonly turnId: string | null; readonly text: string }>();
  return (facts) => {
    const { ref, turnId, gauge } = facts;
    const first = typeof base === "function" ? base(facts) : base;
    const line = showContextLine ? contextLine(gauge) : null;
    const now = [line, flushText(gauge, parts)].filter((text) => text !== null).join("\n\n");
    const before = said.get(keyOf(ref));
    const isSame = before?.turnId === turnId && withoutFigures(before.text) === withoutFigures(now);
    const text = isSame ? before.text : now;
    if (!isSame && turnId !== null) said.set(keyOf(ref), { turnId, text });
    if (text === "") return first;
    return first === null ? text : `${first}\n\n${text}`;
  };
}

function flushText({ tokens, windowTokens }: Gauge, parts: Parameters<typeof systemText>[1]): string | null {
  const { flush, compactor, clock } = parts;
  if (flush === null) return null;
  const { triggerTokens } = compactor.need({ tokens, windowTokens, messages: 0 });
  const sizes = { tokens, windowTokens, compactAtTokens: triggerTokens, isCompactionNext: false };
  return decideFlush({ entry: { sessionId: "" }, ...sizes, nowMs: clock.nowMs() }, flush).systemText;
}

function withoutFigures(text: string): string {
  return text.replaceAll(/\d+/g, "#");
}
