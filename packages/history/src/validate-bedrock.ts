import { providerLimits, runSteps, type Steps } from "@throughline/core/internal";
import { ViolationList, type Violation } from "./violation.ts";
import { hasLoneSurrogate, isBlank, isWireFields, surrogateText, wireList, wireRole, wireText } from "./wire-values.ts";
import type { WireFields } from "./wire-values.ts";

const limits = providerLimits.bedrock;

const blockFields = [
  "text",
  "image",
  "document",
  "video",
  "toolUse",
  "toolResult",
  "reasoningContent",
  "cachePoint",
  "guardContent",
];

/** Checks the messages of a Converse request as strictly as Bedrock does. Returns all violations. */
export function validateBedrock(messages: readonly unknown[]): readonly Violation[] {
  return runSteps(bedrockSteps(messages));
}

/** Checks like `validateBedrock`, one message per step, so that a long list does not block the process. */
export function* bedrockSteps(messages: readonly unknown[]): Steps<readonly Violation[]> {
  const check = new ConverseCheck(messages);
  if (wireRole(messages[0]) !== "user") {
    const text =
      "A conversation must start with a user message. Try again with a conversation that starts with a user message.";
    check.fail("first-is-user", "messages.0", text);
  }
  for (const index of messages.keys()) {
    check.message(index);
    yield;
  }
  const last = messages.length - 1;
  const open = idsOf(messages[last], "toolUse");
  if (open.length > 0) check.unanswered(open, last + 1);
  if (wireRole(messages[last]) === "assistant") {
    const text =
      "This model does not support assistant message prefill. The conversation must end with a user message.";
    check.fail("last-is-user", `messages.${last}`, text);
  }
  return check.found;
}

class ConverseCheck extends ViolationList {
  private readonly messages: readonly unknown[];
  private readonly ids = new Set<string>();

  constructor(messages: readonly unknown[]) {
    super();
    this.messages = messages;
  }

  message(index: number): void {
    const message = this.messages[index];
    const path = `messages.${index}`;
    const role = wireRole(message);
    if (!isWireFields(message) || (role !== "user" && role !== "assistant")) {
      const text = `1 validation error detected: Value '${role}' at 'messages.role' failed to satisfy constraint: Member must satisfy enum value set: [user, assistant]`;
      this.fail("role", path, text);
      return;
    }
    if (index > 0 && wireRole(this.messages[index - 1]) === role) {
      const text = "A conversation must alternate between user and assistant roles.";
      this.fail("alternation", path, text);
    }
    if (hasLoneSurrogate(message)) this.fail("json", path, surrogateText);
    const content = wireList(message["content"]);
    if (content.length === 0)
      this.fail(
        "content",
        path,
        `The content field in the Message object at ${path} is empty. Add a ContentBlock object to the content field and try again.`,
      );
    for (const [place, block] of content.entries()) this.block(block, role, `${path}.content.${place}`);
    this.pairs(message, index);
    if (
      content.some((block) => isWireFields(block) && block["document"] !== undefined) &&
      textsOf(content).length === 0
    )
      this.fail("document", path, "A text block must be included with a document.");
  }

  unanswered(ids: readonly string[], index: number): void {
    this.fail(
      "call-answered",
      `messages.${index}`,
      `Expected toolResult blocks at messages.${index}.content for the following Ids: ${ids.join(", ")}`,
    );
  }

  private block(block: unknown, role: string, path: string): void {
    const keys = isWireFields(block) ? Object.keys(block) : [];
    const [key = ""] = keys;
    if (!isWireFields(block) || keys.length !== 1 || !blockFields.includes(key)) {
      this.fail(
        "block-type",
        path,
        `The ContentBlock object at ${path} must set one of the following keys: text, image, toolUse, toolResult, document.`,
      );
      return;
    }
    const value = block[key];
    if (key === "text" && (typeof value !== "string" || isBlank(value)))
      this.fail(
        "text-not-blank",
        path,
        `The text field in the ContentBlock object at ${path} is blank. Add text to the text field, and try again.`,
      );
    const writer = key === "toolUse" || key === "reasoningContent" ? "assistant" : key === "text" ? role : "user";
    if (writer !== role)
      this.fail("block-role", path, `The ContentBlock object at ${path} cannot be in a message of the role ${role}.`);
    if (key === "toolUse") this.toolUse(isWireFields(value) ? value : {}, path);
    if (key === "toolResult") this.toolResult(isWireFields(value) ? value : {}, path);
    if (key === "document") this.document(isWireFields(value) ? value : {}, path);
  }

  private document(document: WireFields, path: string): void {
    const name = wireText(document["name"]);
    if (!/^[A-Za-z0-9\s()[\]-]{1,200}$/.test(name) || /\s{2}/.test(name))
      this.fail(
        "document",
        path,
        "The document file name can only contain alphanumeric characters, whitespace characters, hyphens, parentheses, and square brackets.",
      );
  }

  private toolUse(call: WireFields, path: string): void {
    const id = wireText(call["toolUseId"]);
    const pattern = "failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+";
    if (!limits.callId.allowed.test(id))
      this.fail(
        "id-pattern",
        path,
        `1 validation error detected: Value '${id}' at '${path}.toolUse.toolUseId' ${pattern}`,
      );
    if (this.ids.has(id)) this.fail("id-unique", path, `The toolUse blocks at ${path} contain duplicate Ids: ${id}`);
    this.ids.add(id);
    if (!limits.toolName.allowed.test(wireText(call["name"])))
      this.fail(
        "name-pattern",
        path,
        `1 validation error detected: Value '${wireText(call["name"])}' at '${path}.toolUse.name' ${pattern}`,
      );
    if (!isWireFields(call["input"]))
      this.fail(
        "input",
        path,
        `The format of the value at ${path}.toolUse.input is invalid. Provide a json object for the field and try again.`,
      );
  }

  private toolResult(result: WireFields, path: string): void {
    const content = wireList(result["content"]);
    if (content.length === 0) this.fail("result-content", path, `The content field at ${path}.toolResult is empty.`);
    for (const block of content) {
      if (isWireFields(block) && typeof block["text"] === "string" && isBlank(block["text"]))
        this.fail("text-not-blank", path, `The text field in the ContentBlock object at ${path}.toolResult is blank.`);
    }
  }

  private pairs(message: WireFields, index: number): void {
    const results = idsOf(message, "toolResult");
    const called = idsOf(this.messages[index - 1], "toolUse");
    const [answered, asked] = [new Set(results), new Set(called)];
    const open = called.filter((id) => !answered.has(id));
    if (open.length > 0) this.unanswered(open, index);
    const isTooMany = results.some((id) => !asked.has(id)) || answered.size !== results.length;
    if (isTooMany)
      this.fail(
        "result-asked-for",
        `messages.${index}`,
        `The number of toolResult blocks at messages.${index}.content exceeds the number of toolUse blocks of previous turn.`,
      );
  }
}

function idsOf(message: unknown, field: string): readonly string[] {
  return wireList(isWireFields(message) ? message["content"] : null).flatMap((block) => {
    const inner = isWireFields(block) ? block[field] : undefined;
    return isWireFields(inner) ? [wireText(inner["toolUseId"])] : [];
  });
}

function textsOf(content: readonly unknown[]): readonly unknown[] {
  return content.filter((block) => isWireFields(block) && typeof block["text"] === "string");
}
