import type { Usage } from "@throughline/core";
import { isFields, type Fields } from "@throughline/core/internal";
import { recordsFromMessages } from "@throughline/history/gemini";
import { withShownText } from "../as-text.ts";
import { attempt, partOf, plainMessage } from "../mapped-messages.ts";
import { countOf } from "../token-count.ts";
import type { RecordBody } from "../unit-records.ts";

const failures: ReadonlySet<unknown> = new Set(["error", "cancelled"]);

/** Reads what a person, a tool or the program said to the model. Null means that the parts have no known form. */
export function saidBodies(message: unknown, toolCallResult: unknown): readonly RecordBody[] | null {
  const isFailed = isFields(toolCallResult) && failures.has(toolCallResult["status"]);
  return (
    draftsOf(message, "user")?.map((said) =>
      said["role"] === "toolResult" && isFailed
        ? { type: "message", message: { ...said, isError: true } }
        : { type: "message", message: said },
    ) ?? null
  );
}

interface ReplyFacts {
  readonly model: unknown;
  readonly usageMetadata: unknown;
  /** Names the reply. Lines with the same id are parts of one reply. */
  readonly responseId: string;
  readonly isFurtherPart: boolean;
}

/** Reads a reply of the model. Null means that the parts have no known form. */
export function replyBodies(message: unknown, facts: ReplyFacts): readonly RecordBody[] | null {
  const { model, usageMetadata, responseId, isFurtherPart } = facts;
  const usage = usageOf(usageMetadata);
  return (
    draftsOf(message, "model")?.map((reply, index) => {
      // A line does not state the provider. A reply without a call does not state how it ended.
      const { api: _api, provider: _provider, stopReason, ...fields } = reply;
      const body = {
        type: "message",
        message: {
          ...fields,
          ...(typeof model === "string" && model !== "" ? { model } : {}),
          ...(stopReason === "toolUse" ? { stopReason } : {}),
          ...(usage === null || index > 0 ? {} : { usage }),
        },
      };
      return partOf(body, responseId, isFurtherPart || index > 0);
    }) ?? null
  );
}

/** Reads the contents of a compressed history, which have no ids or times of their own. */
export function contentBodies(content: Fields): readonly RecordBody[] {
  const role = content["role"] === "model" ? "model" : "user";
  return (draftsOf(content, role) ?? []).map((message) => {
    const { api: _api, provider: _provider, ...fields } = message;
    return { type: "message", message: fields };
  });
}

function draftsOf(message: unknown, role: "user" | "model"): readonly Fields[] | null {
  if (!isFields(message) || !Array.isArray(message["parts"])) return null;
  const parts = (message["parts"] as readonly unknown[]).map(withShownText);
  if (parts.length === 0) return [];
  return attempt(() => recordsFromMessages([{ role, parts }]))?.map((draft) => plainMessage(draft.message)) ?? null;
}

/**
 * The count of the prompt includes cached tokens. Thoughts are a part of the output of some providers and stand beside
 * it for others, and the total shows which.
 */
export function usageOf(metadata: unknown): Usage | null {
  if (!isFields(metadata)) return null;
  const count = (name: string): number => countOf(metadata[name]);
  const prompt = count("promptTokenCount");
  const cacheRead = Math.min(count("cachedContentTokenCount"), prompt);
  const candidates = count("candidatesTokenCount");
  const thoughts = count("thoughtsTokenCount");
  const isBeside = count("totalTokenCount") >= prompt + candidates + thoughts;
  const output = isBeside ? candidates + thoughts : Math.max(candidates, thoughts);
  const totalTokens = prompt + output;
  if (totalTokens === 0) return null;
  const usage = { input: prompt - cacheRead, output, cacheRead, cacheWrite: 0, totalTokens };
  return thoughts > 0 ? { ...usage, reasoning: thoughts } : usage;
}

/** The program writes the same counts of a call under other names. */
export function usageOfEvent(event: Fields): Usage | null {
  return usageOf({
    promptTokenCount: event["input_token_count"],
    cachedContentTokenCount: event["cached_content_token_count"],
    candidatesTokenCount: event["output_token_count"],
    thoughtsTokenCount: event["thoughts_token_count"],
    totalTokenCount: event["total_token_count"],
  });
}
