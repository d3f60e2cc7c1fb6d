import { isFields, type Fields } from "@throughline/core/internal";
import type { ReplyFacts } from "./prompt-steps.ts";

/** Builds the content of a reply from the parts of a stream, in the form that a call without a stream returns. */
export class ReplyParts {
  readonly #content: Fields[] = [];
  readonly #open = new Map<unknown, { type: string; text: string; metadata: unknown }>();
  /** Holds the part that ended the stream, with `finishReason` and `usage`; null until it arrives. */
  finish: Fields | null = null;
  /** Holds the provider's facts about its response, such as `id` and `modelId`; empty until a part states some. */
  response: Fields = {};
  /** States whether the stream has reported an error. */
  hasFailed = false;

  /** Adds the next part of the stream. Parts of an unknown type are ignored. */
  take(part: Fields): void {
    const { type, id, delta, providerMetadata } = part;
    switch (type) {
      case "text-start":
      case "reasoning-start":
        this.#open.set(id, {
          type: type === "text-start" ? "text" : "reasoning",
          text: "",
          metadata: providerMetadata,
        });
        return;
      case "text-delta":
      case "reasoning-delta":
      case "text-end":
      case "reasoning-end":
        this.#grow(id, delta, providerMetadata);
        if (type.endsWith("-end")) this.#end(id);
        return;
      case "tool-call":
      case "tool-result":
      case "file":
      case "reasoning-file":
      case "custom":
        this.#content.push(part);
        return;
      case "response-metadata":
        this.response = { ...this.response, ...part };
        return;
      case "error":
        this.hasFailed = true;
        return;
      case "finish":
        this.finish = part;
    }
  }

  /** Returns the content so far. Texts that broke off are included. */
  content(): readonly Fields[] {
    for (const id of this.#open.keys()) this.#end(id);
    return this.#content;
  }

  #grow(id: unknown, delta: unknown, metadata: unknown): void {
    const open = this.#open.get(id);
    if (open === undefined) return;
    if (typeof delta === "string") open.text += delta;
    if (isFields(metadata)) open.metadata = metadata;
  }

  #end(id: unknown): void {
    const open = this.#open.get(id);
    this.#open.delete(id);
    if (open === undefined) return;
    const own = isFields(open.metadata) ? { providerMetadata: open.metadata } : {};
    this.#content.push({ type: open.type, text: open.text, ...own });
  }
}

const stopReasons: Readonly<Record<string, string>> = { "tool-calls": "toolUse", unknown: "stop", other: "stop" };

function stopReasonOf(finishReason: unknown): string {
  const word = isFields(finishReason) ? finishReason["unified"] : finishReason;
  return typeof word === "string" ? (stopReasons[word] ?? word) : "stop";
}

/** Undefined means that the provider reported no tokens. */
function usageOf(usage: unknown): Fields | undefined {
  if (!isFields(usage)) return undefined;
  const given = isFields(usage["inputTokens"]) ? usage["inputTokens"] : {};
  const made = isFields(usage["outputTokens"]) ? usage["outputTokens"] : {};
  const [total, cacheRead, cacheWrite] = [given["total"], given["cacheRead"], given["cacheWrite"]].map(countOf);
  const [output, reasoning] = [made["total"], made["reasoning"]].map(countOf);
  if (given["total"] === undefined && made["total"] === undefined) return undefined;
  const fresh =
    given["noCache"] === undefined
      ? Math.max(0, (total ?? 0) - (cacheRead ?? 0) - (cacheWrite ?? 0))
      : countOf(given["noCache"]);
  const thought = (reasoning ?? 0) > 0 ? { reasoning } : {};
  const counts = { input: fresh, output, cacheRead, cacheWrite };
  return { ...counts, ...thought, totalTokens: (total ?? 0) + (output ?? 0) };
}

function countOf(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : 0;
}

/** Returns the facts of a reply from the requested model, the SDK's result and the provider's response. */
export function replyFactsOf(
  { provider, modelId }: { readonly provider: string; readonly modelId: string },
  { finishReason, usage }: Fields,
  response: Fields,
): ReplyFacts {
  const counted = usageOf(usage);
  return {
    provider: provider.split(".", 1)[0] ?? provider,
    model: typeof response["modelId"] === "string" ? response["modelId"] : modelId,
    stopReason: stopReasonOf(finishReason),
    ...(typeof response["id"] === "string" ? { responseId: response["id"] } : {}),
    ...(counted === undefined ? {} : { usage: counted }),
  };
}
