import { type Fields, isFields } from "../../packages/core/src/json-object.ts";
import type { ReceivedRequest } from "../../packages/testing/src/index.ts";

/** The task that a main agent gives its sub-agent. */
export const task = "Say what you see in the project.";

/** Which agent of a program asks. */
export type Asker = "main" | "title" | "sub-agent";

/** What a request of an agent says, seen from the provider. */
export interface RequestFacts {
  readonly asker: Asker;
  /** How many results of tools stand behind the last question. */
  readonly results: number;
}

/** Reads a request without anything of what the gateway knows. */
export function factsOf({ body }: Pick<ReceivedRequest, "body">): RequestFacts {
  const fields = isFields(body) ? body : {};
  const items = listOf(fields["messages"] ?? fields["input"]);
  const added = items.filter((item) => item["type"] === "additional_tools");
  const hasTools = [fields, ...added].some((holder) => listOf(holder["tools"]).length > 0);
  const at = items.findLastIndex(isQuestion);
  const question = items[at] ?? {};
  const results = items.slice(at + 1).filter(isResult).length;
  const isSubAgent = question["type"] === "agent_message" || textOf(question).includes(task);
  return { asker: !hasTools ? "title" : isSubAgent ? "sub-agent" : "main", results };
}

function isResult(item: Fields): boolean {
  if (item["role"] === "tool" || String(item["type"]).endsWith("_call_output")) return true;
  return item["role"] === "user" && listOf(item["content"]).some(({ type }) => type === "tool_result");
}

/** Codex gives a sub-agent its task in a message between agents, in part encrypted. */
function isQuestion(item: Fields): boolean {
  if (item["type"] === "agent_message") return item["recipient"] !== "/root";
  return item["role"] === "user" && !isResult(item);
}

function textOf({ content }: Fields): string {
  if (typeof content === "string") return content;
  return listOf(content)
    .map(({ text }) => (typeof text === "string" ? text : ""))
    .join("\n");
}

function listOf(value: unknown): readonly Fields[] {
  return Array.isArray(value) ? value.filter(isFields) : [];
}
