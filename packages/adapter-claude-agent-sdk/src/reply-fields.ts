import type { AppendDraft } from "@throughline/core";
import { type Fields, isFields, readUsage } from "@throughline/core/internal";

/** Counts the tokens of all replies of a session. */
export interface SpentTokens {
  readonly input: number;
  readonly output: number;
}

/** Reads the counts from the fields of a session entry; an absent field counts as 0. */
export function readSpentTokens({ inputTokens, outputTokens }: Fields): SpentTokens {
  return { input: countOrZero(inputTokens), output: countOrZero(outputTokens) };
}

/** Adds the replies among these drafts to the earlier counts, and builds the entry fields that the replies change. */
export function replyFields(
  drafts: readonly AppendDraft[],
  earlier: SpentTokens,
): { readonly fields: Fields; readonly spent: SpentTokens } {
  let spent = earlier;
  const fields: Record<string, unknown> = {};
  for (const draft of drafts) {
    // A draft is a record itself, or wraps the record of another program's line.
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
    // The last reply alone states how full the context is, so this value is not a sum.
    fields["totalTokens"] = usage.occupancyTokens;
    fields["totalTokensFresh"] = true;
  }
  return { fields, spent };
}

function countOrZero(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}
