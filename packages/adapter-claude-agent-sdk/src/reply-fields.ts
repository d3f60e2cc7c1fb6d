import type { AppendDraft } from "@throughline/core";
import { type Fields, isFields, readUsage } from "@throughline/core/internal";

/** Counts the tokens of a session's replies so far; the entry stores both counts. */
export interface SpentTokens {
  readonly input: number;
  readonly output: number;
}

export function spentTokens({ inputTokens, outputTokens }: Fields): SpentTokens {
  return { input: countOf(inputTokens), output: countOf(outputTokens) };
}

/** Builds the entry fields that new replies change: the model, and the tokens added to the earlier counts. */
export function replyFields(
  drafts: readonly AppendDraft[],
  before: SpentTokens,
): { readonly fields: Fields; readonly spent: SpentTokens } {
  let spent = before;
  const fields: Record<string, unknown> = {};
  for (const draft of drafts) {
    const record = ("record" in draft && !("type" in draft) ? draft.record : draft) as Fields;
    const message = isFields(record["message"]) ? record["message"] : {};
    if (message["role"] !== "assistant") continue;
    const { model, provider } = message;
    // Claude Code stores its own notices as replies of a model with this name, which is not a real model.
    if (typeof model === "string" && model !== "<synthetic>") {
      fields["model"] = model;
      fields["modelProvider"] = typeof provider === "string" ? provider : "anthropic";
    }
    const usage = readUsage(message["usage"]);
    if (usage === null) continue;
    spent = { input: spent.input + usage.input, output: spent.output + usage.output };
    fields["inputTokens"] = spent.input;
    fields["outputTokens"] = spent.output;
    fields["totalTokens"] = usage.occupancyTokens;
    fields["totalTokensFresh"] = true;
  }
  return { fields, spent };
}

function countOf(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}
