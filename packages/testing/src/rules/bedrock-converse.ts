import { providerLimits } from "@throughline/core/internal";
import { isObject, listOf, objectsOf, repeated, textOf } from "../json-value.ts";
import type { JsonObject } from "../json-value.ts";
import { firstOf, firstViolation } from "../violation.ts";
import type { Rule, Violation } from "../violation.ts";

const limits = providerLimits.bedrock;

const tryAgain = "and try again.";

function refuse(message: string): Violation {
  return { status: 400, type: "ValidationException", message };
}

function idsIn(message: JsonObject | undefined, field: "toolUse" | "toolResult"): readonly string[] {
  return objectsOf(message?.["content"]).flatMap((block) => {
    const inner = block[field];
    return isObject(inner) ? [textOf(inner["toolUseId"])] : [];
  });
}

const turns: Rule<JsonObject> = (body) => {
  const messages = objectsOf(body["messages"]);
  if (messages.length === 0 || messages[0]?.["role"] !== "user")
    return refuse(
      `A conversation must start with a user message. Try again with a conversation that starts with a user message.`,
    );
  const stray = messages.find((message) => !["user", "assistant"].includes(textOf(message["role"])));
  if (stray)
    return refuse(
      `1 validation error detected: Value '${textOf(stray["role"])}' at 'messages.role' failed to satisfy constraint: Member must satisfy enum value set: [user, assistant]`,
    );
  return firstOf(messages, (message, index) =>
    index > 0 && message["role"] === messages[index - 1]?.["role"]
      ? refuse(
          `A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and assistant roles ${tryAgain}`,
        )
      : null,
  );
};

function checkBlock(block: unknown, at: string): Violation | null {
  if (!isObject(block)) return refuse(`The value at ${at} is not a ContentBlock object.`);
  if (Object.keys(block).length !== 1)
    return refuse(
      `The ContentBlock object at ${at} must set one of the following keys: text, image, toolUse, toolResult.`,
    );
  if (typeof block["text"] === "string" && block["text"].trim() === "")
    return refuse(
      `The text field in the ContentBlock object at ${at} is blank. Add text to the text field, ${tryAgain}`,
    );
  const call = block["toolUse"];
  if (!isObject(call)) return null;
  if (!limits.callId.allowed.test(textOf(call["toolUseId"])))
    return refuse(
      `1 validation error detected: Value '${textOf(call["toolUseId"])}' at '${at}.toolUse.toolUseId' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+`,
    );
  return isObject(call["input"])
    ? null
    : refuse(
        `The format of the value at ${at}.toolUse.input is invalid. Provide a json object for the field ${tryAgain}`,
      );
}

const blocks: Rule<JsonObject> = (body) =>
  firstOf(objectsOf(body["messages"]), (message, index) => {
    const content = listOf(message["content"]);
    const at = `messages.${index}`;
    if (content.length === 0)
      return refuse(
        `The content field in the Message object at ${at} is empty. Add a ContentBlock object to the content field ${tryAgain}`,
      );
    return firstOf(content, (block, position) => checkBlock(block, `${at}.content.${position}`));
  });

const pairs: Rule<JsonObject> = (body) => {
  const messages = objectsOf(body["messages"]);
  return firstOf(messages, (message, index) => {
    const at = `messages.${index}.content`;
    const calls = idsIn(message, "toolUse");
    if (repeated(calls).length > 0)
      return refuse(`The toolUse blocks at ${at} contain duplicate Ids: ${repeated(calls).join(", ")}`);
    const called = idsIn(messages[index - 1], "toolUse");
    const results = idsIn(message, "toolResult");
    const open = called.filter((id) => !results.includes(id));
    if (open.length > 0) return refuse(`Expected toolResult blocks at ${at} for the following Ids: ${open.join(", ")}`);
    if (results.length > called.length)
      return refuse(`The number of toolResult blocks at ${at} exceeds the number of toolUse blocks of previous turn.`);
    if (calls.length === 0 || index < messages.length - 1) return null;
    return refuse(
      `Expected toolResult blocks at messages.${index + 1}.content for the following Ids: ${calls.join(", ")}`,
    );
  });
};

const toolConfig: Rule<JsonObject> = (body) => {
  const messages = objectsOf(body["messages"]);
  const usesTools = messages.some(
    (message) => [...idsIn(message, "toolUse"), ...idsIn(message, "toolResult")].length > 0,
  );
  const config = isObject(body["toolConfig"]) ? body["toolConfig"] : {};
  if (!usesTools || listOf(config["tools"]).length > 0) return null;
  return refuse("The toolConfig field must be defined when using toolUse and toolResult content blocks.");
};

/**
 * Checks a request against the rules of Amazon Bedrock's Converse API. Returns the first violation, or null for a valid
 * request.
 */
export function checkBedrockConverse(body: Readonly<Record<string, unknown>>): Violation | null {
  return firstViolation(body, [turns, blocks, pairs, toolConfig]);
}
