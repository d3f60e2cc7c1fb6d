/** The formats of other programs, by the names that `import --from` takes, the ones first that are met most. */
export const foreignFormatNames = [
  "claude-code",
  "codex",
  "gemini",
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

/** Those of them that are read only. */
const readFormatNames = ["langgraph", "copilot-cli", "cline", "cursor", "goose", "aider"] as const;
/** A format that cannot be written. */
type ReadFormatName = (typeof readFormatNames)[number];

/** A format that is read. */
export type ForeignFormatName = (typeof foreignFormatNames)[number];

/** A format that is written too. */
export type WritableFormatName = Exclude<ForeignFormatName, ReadFormatName>;

/** Those of them that `export --to` takes. */
export const writableFormatNames: readonly WritableFormatName[] = foreignFormatNames.filter(isWritable);

function isWritable(name: ForeignFormatName): name is WritableFormatName {
  return !(readFormatNames as readonly ForeignFormatName[]).includes(name);
}
