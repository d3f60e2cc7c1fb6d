/** What the simulator knows about a model. */
export interface SimulatedModel {
  /** Tokens of prompt and answer together. Ollama: the most `num_ctx` may ask for. */
  readonly windowTokens: number;
  readonly maxOutputTokens: number;
  /** Anthropic: may the list end with an assistant message that the answer continues? */
  readonly prefill: boolean;
  /** Anthropic: is a signature bound to the messages before its block? */
  readonly prefixBinding: boolean;
  /** Anthropic: are system messages accepted inside the list without a beta header? */
  readonly systemMessages: boolean;
  /** Anthropic: what happens when prompt and `max_tokens` together exceed the window. */
  readonly outputOverflow: "refuse" | "stop";
  /** OpenAI chat: `max_tokens` is refused in favor of `max_completion_tokens`. */
  readonly completionTokensOnly: boolean;
  /** OpenAI-compatible servers: thinking is sent, and may come back, as `reasoning_content`. */
  readonly reasoningContent: boolean;
  /** Ollama: what `/api/show` lists; `tools` and `thinking` are refused when not listed. */
  readonly capabilities: readonly string[];
}

/** Major and minor of `claude-<family>-<major>[-<minor>]`; a date in place of the minor is none. */
function claudeVersion(model: string): { readonly family: string; readonly version: number } | null {
  const match = /^claude-([a-z]+)-(\d+)(?:-(\d{1,2}))?(?!\d)/.exec(model);
  return match ? { family: match[1] ?? "", version: Number(match[2]) + Number(match[3] ?? 0) / 100 } : null;
}

/** Known behavior by model name; what a name does not tell is the tolerant choice. */
function defaultsOf(model: string): SimulatedModel {
  const claude = claudeVersion(model);
  // Fable and Mythos bind from 5.1 on, the other families from 5.5.
  const bindsFrom = claude && ["fable", "mythos"].includes(claude.family) ? 5.01 : 5.05;
  return {
    windowTokens: claude ? 200_000 : 128_000,
    maxOutputTokens: 64_000,
    prefill: !claude || claude.version < 4.06,
    prefixBinding: claude !== null && claude.version >= bindsFrom,
    systemMessages: false,
    outputOverflow: "refuse",
    completionTokensOnly: /^(?:o\d|gpt-5)/.test(model),
    reasoningContent: false,
    capabilities: ["completion", "tools", "thinking"],
  };
}

/** A model as configured over its defaults. */
export function resolveModel(
  model: string,
  configured: Readonly<Record<string, Partial<SimulatedModel>>>,
): SimulatedModel {
  return { ...defaultsOf(model), ...configured["*"], ...configured[model] };
}
