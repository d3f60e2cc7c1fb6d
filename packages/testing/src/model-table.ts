/** Describes how the simulator treats a model. */
export interface SimulatedModel {
  /** Limits prompt and answer together, in tokens. For Ollama it caps `num_ctx`. */
  readonly windowTokens: number;
  /** Limits the answer, in tokens. */
  readonly maxOutputTokens: number;
  /** Anthropic: states whether the list may end with an assistant message that the answer continues. */
  readonly prefill: boolean;
  /** Anthropic: states whether a signature is bound to the messages before its block. */
  readonly prefixBinding: boolean;
  /** Anthropic: states whether the list may hold system messages without a beta header. */
  readonly systemMessages: boolean;
  /**
   * Anthropic: decides whether the simulator rejects a request whose prompt plus `max_tokens` exceed the window, or
   * stops the answer at the end of the window.
   */
  readonly outputOverflow: "refuse" | "stop";
  /** Anthropic: states whether the model answers in JSON of a schema (`output_config.format`). */
  readonly jsonOutput: boolean;
  /** OpenAI chat: states whether the model rejects `max_tokens` in favor of `max_completion_tokens`. */
  readonly completionTokensOnly: boolean;
  /** OpenAI-compatible servers: states whether the server sends thinking as `reasoning_content` and accepts it back. */
  readonly reasoningContent: boolean;
  /**
   * Ollama: lists the capabilities in `/api/show`. A request for `tools` or `thinking` is rejected unless the list
   * includes it.
   */
  readonly capabilities: readonly string[];
}

/**
 * Parses major and minor of `claude-<family>-<major>[-<minor>]`. A date in place of the minor does not count as a
 * version.
 */
function claudeVersion(model: string): { readonly family: string; readonly version: number } | null {
  const match = /^claude-([a-z]+)-(\d+)(?:-(\d{1,2}))?(?!\d)/.exec(model);
  return match ? { family: match[1] ?? "", version: Number(match[2]) + Number(match[3] ?? 0) / 100 } : null;
}

/** Returns the known behavior by model name. If the name reveals nothing, the tolerant choice applies. */
function defaultsOf(model: string): SimulatedModel {
  const claude = claudeVersion(model);
  // Fable and Mythos bind signatures from 5.1 on, the other families from 5.5.
  const bindsFrom = claude && ["fable", "mythos"].includes(claude.family) ? 5.01 : 5.05;
  return {
    windowTokens: claude ? 200_000 : 128_000,
    maxOutputTokens: 64_000,
    prefill: !claude || claude.version < 4.06,
    prefixBinding: claude !== null && claude.version >= bindsFrom,
    systemMessages: false,
    outputOverflow: "refuse",
    jsonOutput: claude === null || claude.version >= 4.05,
    completionTokensOnly: /^(?:o\d|gpt-5)/.test(model),
    reasoningContent: false,
    capabilities: ["completion", "tools", "thinking"],
  };
}

/** Merges the defaults of the model, the entry `*`, and the entry of the model, which wins. */
export function resolveModel(
  model: string,
  configured: Readonly<Record<string, Partial<SimulatedModel>>>,
): SimulatedModel {
  return { ...defaultsOf(model), ...configured["*"], ...configured[model] };
}
