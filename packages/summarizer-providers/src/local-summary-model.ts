/**
 * A local summarizer as the documents this project began with describe it: a small model of Ollama, with a window that
 * takes a whole conversation and time to read it. Data for whoever configures one; nothing here uses it by itself.
 */
export const localSummaryModel: {
  readonly provider: "ollama";
  /** The address of an Ollama server on this machine. */
  readonly baseUrl: string;
  /** The model by Ollama's own name. */
  readonly modelId: string;
  /** How long one summary may take, in milliseconds. */
  readonly deadlineMs: number;
  /** Asked for with every request, and the window conversations are cut to. */
  readonly windowTokens: number;
} = {
  provider: "ollama",
  baseUrl: "http://localhost:11434",
  modelId: "qwen2.5:7b",
  deadlineMs: 600_000,
  windowTokens: 131_072,
};
