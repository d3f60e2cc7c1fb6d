/** Lists the names of the formats that `import --from` takes. The formats that are met most come first. */
export const foreignFormatNames = [
  "claude-code",
  "codex",
  "gemini",
  "qwen-code",
  "kimi-cli",
  "amp",
  "droid",
  "openai",
  "ai-sdk",
  "opencode",
  "openai-agents",
  "langgraph",
  "copilot-cli",
  "cline",
  "cursor",
  "goose",
  "aider",
  "anthropic",
  "sharegpt",
  "harmony",
] as const;

/** Throughline reads these formats and cannot write them. */
const readFormatNames = [
  "qwen-code",
  "kimi-cli",
  "amp",
  "droid",
  "langgraph",
  "copilot-cli",
  "cline",
  "cursor",
  "goose",
  "aider",
] as const;
/** Names a format that cannot be written. */
type ReadFormatName = (typeof readFormatNames)[number];

/** Names a format that can be read. */
export type ForeignFormatName = (typeof foreignFormatNames)[number];

/** Names a format that can be written as well. */
export type WritableFormatName = Exclude<ForeignFormatName, ReadFormatName>;

/** Lists the names of the formats that `export --to` takes. */
export const writableFormatNames: readonly WritableFormatName[] = foreignFormatNames.filter(isWritable);

function isWritable(name: ForeignFormatName): name is WritableFormatName {
  return !(readFormatNames as readonly ForeignFormatName[]).includes(name);
}
