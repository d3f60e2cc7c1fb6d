import { isFields, type Fields } from "./json-object.ts";
import type { Usage } from "./record.ts";

/**
 * Holds the tokens of one model call of any provider, by the classes that a record keeps. `input` excludes cache reads
 * and writes. `reasoning` is part of `output`, `cacheWrite1h` part of `cacheWrite`. A record may keep the object as its
 * usage.
 */
export interface CallUsage extends Required<
  Pick<Usage, "input" | "output" | "cacheRead" | "cacheWrite" | "reasoning">
> {
  /** Counts the tokens written to Anthropic's one-hour cache, which cost more. */
  readonly cacheWrite1h: number;
  /**
   * Counts the prompt of the call's last pass, cached or not. It is not the sum of the other counts when the provider
   * compacted the context during the call.
   */
  readonly promptTokens: number;
  /** Counts the tokens in the window after the call: prompt and output of its last pass. */
  readonly occupancyTokens: number;
}

/**
 * Reads the usage of a reply in the shape of any provider, or in the shape that a record stores. Returns null without a
 * usage, when all counts are zero, as after an abort, and when a count cannot be right.
 *
 * Sources of the semantics: Anthropic's `input_tokens` excludes the cache, and so do the record format's `input` and
 * Bedrock's `inputTokens`. OpenAI's `prompt_tokens` and `input_tokens`, Gemini's `promptTokenCount` and the AI SDK's
 * `inputTokens` include it. Gemini's `thoughtsTokenCount` lies outside its `candidatesTokenCount`. Ollama's
 * `prompt_eval_count` counts the whole prompt and is absent when the prompt was not evaluated.
 */
export function readUsage(usage: unknown): CallUsage | null {
  if (!isFields(usage)) return null;
  const reader = readers.find(({ field }) => usage[field] !== undefined && usage[field] !== null);
  const found = reader?.read(usage) ?? null;
  if (found === null) return null;
  // No call has an empty prompt, so a count of zero means that the prompt was not counted.
  return Object.values(found).every((value) => Number.isFinite(value) && value >= 0) && found.promptTokens > 0
    ? found
    : null;
}

type ReadFields = (usage: Fields) => CallUsage | null;

/**
 * The first reader whose field is present reads the usage. The order matters, because Anthropic's shape and OpenAI's
 * newer shape share `input_tokens`.
 */
const readers: readonly { readonly field: string; readonly read: ReadFields }[] = [
  { field: "cacheRead", read: readStored },
  { field: "promptTokenCount", read: readGemini },
  { field: "prompt_tokens", read: readCompletions },
  { field: "input_tokens_details", read: readResponses },
  { field: "input_tokens", read: readAnthropic },
  { field: "prompt_eval_count", read: readOllama },
  { field: "inputTokens", read: readCamelCase },
  { field: "input", read: readStored },
];

interface Counts {
  readonly input: number;
  readonly output: number;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
  readonly cacheWrite1h?: number;
  readonly reasoning?: number;
}

function usageOf({ input, output, cacheRead = 0, cacheWrite = 0, cacheWrite1h = 0, reasoning = 0 }: Counts): CallUsage {
  const promptTokens = input + cacheRead + cacheWrite;
  const occupancyTokens = promptTokens + output;
  return { input, output, cacheRead, cacheWrite, cacheWrite1h, reasoning, promptTokens, occupancyTokens };
}

/** A missing count is 0. A count that is not a number makes the whole usage unreadable. */
function count(fields: unknown, name: string): number {
  const value = isFields(fields) ? (fields[name] ?? 0) : 0;
  return typeof value === "number" ? value : Number.NaN;
}

function readStored(usage: Fields): CallUsage {
  const whole = usageOf({
    input: count(usage, "input"),
    output: count(usage, "output"),
    cacheRead: count(usage, "cacheRead"),
    cacheWrite: count(usage, "cacheWrite"),
    cacheWrite1h: count(usage, "cacheWrite1h"),
    reasoning: count(usage, "reasoning"),
  });
  const { promptTokens, occupancyTokens } = usage;
  const isOurs = typeof promptTokens === "number" && typeof occupancyTokens === "number";
  return isOurs ? { ...whole, promptTokens, occupancyTokens } : whole;
}

function readAnthropic(usage: Fields): CallUsage | null {
  const whole = anthropicPass(usage);
  const passes = Array.isArray(usage["iterations"]) ? usage["iterations"].filter(isFields) : [];
  if (passes.length === 0) return whole;
  // The totals exclude the pass that compacted. The window holds the content of the last pass of the conversation.
  const compactions = passes.filter((pass) => pass["type"] === "compaction").map(anthropicPass);
  const last = passes.findLast((pass) => pass["type"] !== "compaction");
  const { promptTokens, occupancyTokens } = last === undefined ? whole : anthropicPass(last);
  return { ...compactions.reduce(addCounts, whole), promptTokens, occupancyTokens };
}

function anthropicPass(usage: Fields): CallUsage {
  return usageOf({
    input: count(usage, "input_tokens"),
    output: count(usage, "output_tokens"),
    cacheRead: count(usage, "cache_read_input_tokens"),
    cacheWrite: count(usage, "cache_creation_input_tokens"),
    cacheWrite1h: count(usage["cache_creation"], "ephemeral_1h_input_tokens"),
  });
}

function addCounts(one: CallUsage, other: CallUsage): CallUsage {
  return usageOf({
    input: one.input + other.input,
    output: one.output + other.output,
    cacheRead: one.cacheRead + other.cacheRead,
    cacheWrite: one.cacheWrite + other.cacheWrite,
    cacheWrite1h: one.cacheWrite1h + other.cacheWrite1h,
    reasoning: one.reasoning + other.reasoning,
  });
}

/**
 * Chat completions and the APIs that copy them have this shape. DeepSeek states the cached part in a separate field.
 */
function readCompletions(usage: Fields): CallUsage {
  const details = usage["prompt_tokens_details"];
  return includingCache(count(usage, "prompt_tokens"), {
    output: count(usage, "completion_tokens"),
    cacheRead: Math.max(count(details, "cached_tokens"), count(usage, "prompt_cache_hit_tokens")),
    cacheWrite: count(details, "cache_write_tokens"),
    reasoning: count(usage["completion_tokens_details"], "reasoning_tokens"),
  });
}

function readResponses(usage: Fields): CallUsage {
  const details = usage["input_tokens_details"];
  return includingCache(count(usage, "input_tokens"), {
    output: count(usage, "output_tokens"),
    cacheRead: count(details, "cached_tokens"),
    cacheWrite: count(details, "cache_write_tokens"),
    reasoning: count(usage["output_tokens_details"], "reasoning_tokens"),
  });
}

function readGemini(usage: Fields): CallUsage {
  const reasoning = count(usage, "thoughtsTokenCount");
  return includingCache(count(usage, "promptTokenCount") + count(usage, "toolUsePromptTokenCount"), {
    output: count(usage, "candidatesTokenCount") + reasoning,
    cacheRead: count(usage, "cachedContentTokenCount"),
    reasoning,
  });
}

function readOllama(usage: Fields): CallUsage {
  return usageOf({ input: count(usage, "prompt_eval_count"), output: count(usage, "eval_count") });
}

/**
 * Bedrock counts its cache separately. The AI SDK has another name for the cached part and includes it in the input.
 */
function readCamelCase(usage: Fields): CallUsage {
  const output = count(usage, "outputTokens");
  const reasoning = count(usage, "reasoningTokens");
  const cacheRead = count(usage, "cacheReadInputTokens");
  const cacheWrite = count(usage, "cacheWriteInputTokens");
  if (cacheRead + cacheWrite > 0)
    return usageOf({ input: count(usage, "inputTokens"), output, cacheRead, cacheWrite, reasoning });
  return includingCache(count(usage, "inputTokens"), {
    output,
    cacheRead: count(usage, "cachedInputTokens"),
    reasoning,
  });
}

function includingCache(prompt: number, counts: Omit<Counts, "input">): CallUsage {
  const { cacheRead = 0, cacheWrite = 0 } = counts;
  // Some gateways report the cached part beside the prompt, so the difference could be negative.
  return usageOf({ ...counts, input: Math.max(0, prompt - cacheRead - cacheWrite) });
}
