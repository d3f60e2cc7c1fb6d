import type { AssistantMessage, ToolDefinition } from "@throughline/core";
import { toolsByWireName } from "@throughline/core/internal";

/** The names are those that the history's calls have for the provider, so that calls and tools match. */
export interface WireTools {
  readonly definitions: readonly ToolDefinition[];
  /** Maps the provider's names to the tools' own names. Null when all names are the same. */
  readonly ownNames: ReadonlyMap<string, string> | null;
}

const made = new WeakMap<readonly ToolDefinition[], Map<string, WireTools>>();

/** @throws {ThroughlineError} INPUT_INVALID when the provider would have one name for two tools */
export function wireTools(definitions: readonly ToolDefinition[], api: string): WireTools {
  const known = made.get(definitions) ?? new Map<string, WireTools>();
  made.set(definitions, known);
  const tools = known.get(api) ?? makeWireTools(definitions, api);
  known.set(api, tools);
  return tools;
}

function makeWireTools(definitions: readonly ToolDefinition[], api: string): WireTools {
  const ownNames = toolsByWireName(
    definitions.map(({ name }) => name),
    api,
  );
  const wireNames = [...ownNames.keys()];
  if (definitions.every(({ name }, index) => name === wireNames[index])) return { definitions, ownNames: null };
  return {
    definitions: definitions.map((tool, index) => ({ ...tool, name: wireNames[index] ?? tool.name })),
    ownNames,
  };
}

export function ownToolName(name: string, { ownNames }: WireTools): string {
  return ownNames?.get(name) ?? name;
}

export function wireToolName(name: string, { ownNames }: WireTools): string {
  for (const [wireName, ownName] of ownNames ?? []) if (ownName === name) return wireName;
  return name;
}

/** Restores the tools' own names, which the record of the reply stores. */
export function withOwnToolNames(message: AssistantMessage, tools: WireTools): AssistantMessage {
  const { content } = message;
  if (tools.ownNames === null || !Array.isArray(content)) return message;
  const blocks = content as Exclude<AssistantMessage["content"], string>;
  return {
    ...message,
    content: blocks.map((block) =>
      block.type === "toolCall" && typeof block.name === "string"
        ? { ...block, name: ownToolName(block.name, tools) }
        : block,
    ) as AssistantMessage["content"],
  };
}
