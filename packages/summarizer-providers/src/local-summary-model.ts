/**
 * Holds the settings of a local summarizer: a small Ollama model with a window for a whole conversation and time to
 * read it. They are defaults for configurations; no code of this package uses the model by itself.
 */
export const localSummaryModel: {
  readonly provider: "ollama";
  /** States the address of an Ollama server on this machine. */
  readonly baseUrl: string;
  /** Names the model as Ollama does. */
  readonly modelId: string;
  /** Limits one summary, in milliseconds. */
  readonly deadlineMs: number;
  /** States the window in tokens that each request asks for. Conversations are cut to it. */
  readonly windowTokens: number;
} = {
  provider: "ollama",
  baseUrl: "http://localhost:11434",
  modelId: "qwen2.5:7b",
  deadlineMs: 600_000,
  windowTokens: 131_072,
};
