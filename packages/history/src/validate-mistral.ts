import { providerLimits, runSteps, type Steps } from "@throughline/core/internal";
import { ViolationList, type Violation } from "./violation.ts";
import { hasLoneSurrogate, isJson, isWireFields, surrogateText, wireList, wireRole, wireText } from "./wire-values.ts";
import type { WireFields } from "./wire-values.ts";

const limits = providerLimits.mistral;

/** Lists the roles that may follow each role. `start` stands before the first message. */
const followers: Readonly<Record<string, readonly string[]>> = {
  start: ["system", "user"],
  system: ["system", "user", "assistant"],
  user: ["system", "user", "assistant"],
  assistant: ["user", "system", "tool", "assistant"],
  tool: ["assistant", "tool"],
};

/** Checks the messages of a Mistral chat request as strictly as the service does. Returns all violations. */
export function validateMistral(messages: readonly unknown[]): readonly Violation[] {
  return runSteps(mistralSteps(messages));
}

/** Checks like `validateMistral`, one message per step, so that a long list does not block the process. */
export function* mistralSteps(messages: readonly unknown[]): Steps<readonly Violation[]> {
  const check = new MistralCheck();
  for (const [index, message] of messages.entries()) {
    check.message(message, index);
    yield;
  }
  check.end(messages.at(-1), messages.length);
  return check.found;
}

class MistralCheck extends ViolationList {
  private before = "start";
  private wanted: string[] = [];
  private given: string[] = [];
  private readonly ids = new Set<string>();

  message(message: unknown, index: number): void {
    const path = `messages.${index}`;
    const role = wireRole(message);
    if (!isWireFields(message) || !["system", "user", "assistant", "tool"].includes(role)) {
      this.fail("role", path, `Unexpected role '${role}'`);
      return;
    }
    if (hasLoneSurrogate(message)) this.fail("json", path, surrogateText);
    if (followers[this.before]?.includes(role) !== true)
      this.fail("role-order", path, `Unexpected role '${role}' after role '${this.before}'`);
    this.before = role;
    if (role === "tool") {
      this.given.push(this.id(message["tool_call_id"], path));
      this.content(message["content"], path, true);
      return;
    }
    this.counts(path);
    if (role === "assistant") this.assistant(message, path);
    else this.content(message["content"], path, false);
  }

  end(last: unknown, length: number): void {
    this.counts(`messages.${length}`);
    const role = wireRole(last);
    if (role === "user" || role === "tool" || (isWireFields(last) && last["prefix"] === true)) return;
    const text = `Expected last role User or Tool (or Assistant with prefix True) for serving but got ${role || "none"}`;
    this.fail("last-role", `messages.${length - 1}`, text);
  }

  private counts(path: string): void {
    if (this.wanted.length !== this.given.length) {
      this.fail("call-answered", path, "Not the same number of function calls and responses");
    }
    const wanted = new Set(this.wanted);
    const unknown = this.given.find((id) => !wanted.has(id));
    if (unknown !== undefined)
      this.fail("result-asked-for", path, `Unexpected tool call id ${unknown} in tool results`);
    if (new Set(this.given).size !== this.given.length)
      this.fail("single-result", path, "Not the same number of function calls and responses");
    this.wanted = [];
    this.given = [];
  }

  private id(id: unknown, path: string): string {
    const text = wireText(id);
    if (!limits.callId.allowed.test(text)) {
      this.fail("id-pattern", path, `Tool call id was ${text} but must be a-z, A-Z, 0-9, with a length of 9.`);
    }
    return text;
  }

  private assistant(message: WireFields, path: string): void {
    const calls = wireList(message["tool_calls"]);
    for (const [place, call] of calls.entries()) this.call(call, `${path}.tool_calls.${place}`);
    const { content } = message;
    const hasContent = Array.isArray(content) ? content.length > 0 : wireText(content) !== "";
    if (!hasContent && calls.length === 0) {
      const text = "Assistant message must have either content or tool_calls, but not none.";
      this.fail("content", path, text);
    }
    if (hasContent) this.content(content, path, true);
  }

  private call(call: unknown, path: string): void {
    const fields = isWireFields(call) ? call : {};
    const described = isWireFields(fields["function"]) ? fields["function"] : {};
    const id = this.id(fields["id"], path);
    if (this.ids.has(id)) this.fail("id-unique", path, `Duplicate tool call id in assistant message: ${id}`);
    this.ids.add(id);
    this.wanted.push(id);
    if (!limits.toolName.allowed.test(wireText(described["name"])))
      this.fail(
        "name-pattern",
        path,
        `Function name was ${wireText(described["name"])} but must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64.`,
      );
    if (typeof described["arguments"] !== "string" || !isJson(described["arguments"]))
      this.fail("input", path, "Tool call arguments must be valid JSON.");
  }

  private content(content: unknown, path: string, mayBeEmpty: boolean): void {
    if (typeof content === "string") {
      if (content === "" && !mayBeEmpty) this.fail("content", path, "Message content must not be empty");
      return;
    }
    if (!Array.isArray(content) || content.length === 0) {
      this.fail("content", path, `Input should be a valid string or list at ${path}.content`);
      return;
    }
    for (const chunk of content) {
      const type = isWireFields(chunk) ? wireText(chunk["type"]) : "";
      if (!["text", "image_url", "document_url", "reference", "file", "thinking", "input_audio"].includes(type))
        this.fail("block-type", path, `Input tag '${type}' found using 'type' does not match any of the expected tags`);
    }
  }
}
