import type { OptionDefinition } from "./command.ts";
import { parseLimit, parseTime } from "./option-values.ts";

type Parameter = { readonly name: string; readonly description: string };

export const keyArgument: Parameter = {
  name: "<key>",
  description: "key, id, or the beginning of a key, id, label or title",
};
export const exactKeyArgument: Parameter = { name: "<key>", description: "key or id, exactly" };
export const optionalKeyArgument: Parameter = {
  name: "[key]",
  description: "key, id, or the beginning of a key, id, label or title",
};

export const limit: OptionDefinition = {
  flags: "--limit <n>",
  description: "at most this number, or all",
  parse: parseLimit,
};
export const since: OptionDefinition = {
  flags: "--since <time>",
  description: "from this time on: ISO, or an age such as 2d",
  parse: parseTime,
};
export const until: OptionDefinition = {
  flags: "--until <time>",
  description: "before this time: ISO, or an age such as 2d",
  parse: parseTime,
};
export const here: OptionDefinition = {
  flags: "--here",
  description: "only sessions of this folder and the folders below it",
};
export const folder: OptionDefinition = {
  flags: "--folder <dir>",
  description: "only sessions of this folder and the folders below it",
};
export const program: OptionDefinition = {
  flags: "--program <name>",
  description: "only sessions of this program: own, claude-code, codex, pi, …",
};
export const allAgents: OptionDefinition = { flags: "--all-agents", description: "the sessions of every agent" };
export const archived: OptionDefinition = { flags: "--archived", description: "archived sessions too" };
export const role: OptionDefinition = {
  flags: "--role <role>",
  description: "messages of this role only: user, assistant, toolResult, …",
  suggestions: ["user", "assistant", "toolResult", "bashExecution", "custom"],
};
export const purge: OptionDefinition = {
  flags: "--purge",
  description: "permanently delete every copy of the content, with --yes",
};

export const usualModels: readonly string[] = ["anthropic/claude-sonnet-5", "openai/gpt-5", "ollama/", "offline"];
