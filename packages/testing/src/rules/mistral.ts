import { providerLimits } from "@throughline/core/internal";
import { isObject, listOf, objectsOf, parseJson, textOf } from "../json-value.ts";
import type { JsonObject } from "../json-value.ts";
import { firstOf, firstViolation } from "../violation.ts";
import type { Rule, Violation } from "../violation.ts";

const limits = providerLimits.mistral;

function wrongOrder(message: string): Violation {
  return { status: 400, type: "invalid_request_message_order", message, code: "3230" };
}

/** Lists the roles that may follow each role. `start` stands before the first message. */
const followers: Readonly<Record<string, readonly string[]>> = {
  start: ["system", "user", "assistant"],
  system: ["system", "user", "assistant"],
  user: ["system", "user", "assistant"],
  assistant: ["user", "system", "tool", "assistant"],
  tool: ["assistant", "tool"],
};

function calls(message: JsonObject | undefined): readonly JsonObject[] {
  return objectsOf(message?.["tool_calls"]);
}

const order: Rule<JsonObject> = (body) => {
  const messages = objectsOf(body["messages"]);
  return firstOf(messages, (message, index) => {
    const role = textOf(message["role"]);
    const before = index === 0 ? "start" : textOf(messages[index - 1]?.["role"]);
    return (followers[before] ?? []).includes(role)
      ? null
      : wrongOrder(`Unexpected role '${role}' after role '${before}'`);
  });
};

const ending: Rule<JsonObject> = (body) => {
  const last = objectsOf(body["messages"]).at(-1);
  const role = last ? textOf(last["role"]) : "none";
  if (role === "user" || role === "tool" || (role === "assistant" && last?.["prefix"] === true)) return null;
  return wrongOrder(`Expected last role User or Tool (or Assistant with prefix True) for serving but got ${role}`);
};

const counts: Rule<JsonObject> = (body) => {
  const messages = objectsOf(body["messages"]);
  return firstOf(messages, (message, index) => {
    if (message["role"] !== "assistant") return null;
    const rest = messages.slice(index + 1);
    const end = rest.findIndex((later) => later["role"] !== "tool");
    const answers = end === -1 ? rest : rest.slice(0, end);
    const wanted = calls(message).map((call) => textOf(call["id"]));
    const given = answers.map((answer) => textOf(answer["tool_call_id"]));
    if (wanted.length !== given.length) return wrongOrder("Not the same number of function calls and responses");
    const unknown = given.find((id) => !wanted.includes(id));
    return unknown === undefined ? null : wrongOrder(`Unexpected tool call id ${unknown} in tool results`);
  });
};

const ids: Rule<JsonObject> = (body) => {
  const used = objectsOf(body["messages"]).flatMap((message) => [
    ...calls(message).map((call) => textOf(call["id"])),
    ...(message["role"] === "tool" ? [textOf(message["tool_call_id"])] : []),
  ]);
  const bad = used.find((id) => !limits.callId.allowed.test(id));
  if (bad === undefined) return null;
  const message = `Tool call id was ${bad} but must be a-z, A-Z, 0-9, with a length of 9.`;
  return { status: 400, type: "invalid_function_call", message, code: "3280" };
};

const contents: Rule<JsonObject> = (body) =>
  firstOf(objectsOf(body["messages"]), (message) => {
    if (message["role"] !== "assistant") return null;
    const hasContent = listOf(message["content"]).length > 0 || textOf(message["content"]) !== "";
    const malformed = calls(message).find(
      (call) => !isObject(call["function"]) || !parseJson(textOf(call["function"]["arguments"])),
    );
    if (malformed)
      return {
        status: 400,
        type: "invalid_function_call",
        message: "Tool call arguments must be valid JSON.",
        code: "3280",
      };
    if (hasContent || calls(message).length > 0) return null;
    const text = "Assistant message must have either content or tool_calls, but not none.";
    return { status: 400, type: "invalid_request_assistant_message", message: text, code: "3240" };
  });

/**
 * Checks a request against the rules of Mistral's chat completions. Returns the first violation, or null for a valid
 * request.
 */
export function checkMistral(body: Readonly<Record<string, unknown>>): Violation | null {
  return firstViolation(body, [order, contents, ids, counts, ending]);
}
