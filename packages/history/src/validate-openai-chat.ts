import { providerLimits, runSteps, type Steps } from "@throughline/core/internal";
import { ViolationList, type Violation } from "./violation.ts";
import { hasLoneSurrogate, isJson, isWireFields, surrogateText, wireList, wireRole, wireText } from "./wire-values.ts";
import type { WireFields } from "./wire-values.ts";

const limits = providerLimits.openai;

const roles = ["system", "developer", "user", "assistant", "tool"];

/**
 * Checks the messages of a Chat Completions request as strictly as OpenAI and compatible servers do. Returns all
 * violations.
 */
export function validateOpenAiChat(messages: readonly unknown[]): readonly Violation[] {
  return runSteps(openAiChatSteps(messages));
}

/** Checks like `validateOpenAiChat`, one message per step, so that a long list does not block the process. */
export function* openAiChatSteps(messages: readonly unknown[]): Steps<readonly Violation[]> {
  const check = new ChatCheck();
  if (messages.length === 0) {
    const text =
      "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.";
    check.fail("at-least-one", "messages", text);
  }
  for (const [index, message] of messages.entries()) {
    check.message(message, index);
    yield;
  }
  check.end(messages.length);
  return check.found;
}

class ChatCheck extends ViolationList {
  private readonly ids = new Set<string>();
  private open = new Set<string>();
  private asked = new Set<string>();
  private answered = new Set<string>();

  message(message: unknown, index: number): void {
    const path = `messages[${index}]`;
    const role = wireRole(message);
    if (!isWireFields(message) || !roles.includes(role)) {
      const text = `Invalid value: '${role}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.`;
      this.fail("role", `${path}.role`, text);
      return;
    }
    if (hasLoneSurrogate(message)) this.fail("json", path, surrogateText);
    if (role === "tool") {
      this.tool(message, path, index);
      return;
    }
    this.unanswered(index);
    if (role === "assistant") this.assistant(message, path);
    else this.content(message["content"], path, role === "user");
  }

  end(length: number): void {
    this.unanswered(length);
  }

  private unanswered(index: number): void {
    if (this.open.size > 0) {
      const text =
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. " +
        `The following tool_call_ids did not have response messages: ${[...this.open].join(", ")}`;
      this.fail("call-answered", `messages.[${index}].role`, text);
    }
    this.open = new Set();
    this.asked = new Set();
    this.answered = new Set();
  }

  private tool(message: WireFields, path: string, index: number): void {
    const id = wireText(message["tool_call_id"]);
    if (!this.asked.has(id)) {
      const text =
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.";
      this.fail("result-asked-for", `messages.[${index}].role`, text);
    } else if (this.answered.has(id)) {
      this.fail("single-result", path, `Duplicate value for 'tool_call_id' of ${id} in message[${index}]`);
    }
    this.open.delete(id);
    this.answered.add(id);
    this.content(message["content"], path, false);
  }

  private assistant(message: WireFields, path: string): void {
    const { tool_calls: calls, content } = message;
    if (calls !== undefined) {
      if (!Array.isArray(calls) || calls.length === 0) {
        this.fail("calls", `${path}.tool_calls`, `Invalid '${path}.tool_calls': empty array.`);
      }
      for (const [place, call] of wireList(calls).entries()) this.call(call, `${path}.tool_calls[${place}]`);
    }
    const mayBeNull = wireList(calls).length > 0 || typeof message["refusal"] === "string";
    if (content === undefined || content === null ? !mayBeNull : true) this.content(content, path, false);
  }

  private call(call: unknown, path: string): void {
    const described = isWireFields(call) && isWireFields(call["function"]) ? call["function"] : {};
    const id = isWireFields(call) ? call["id"] : null;
    if (typeof id !== "string" || id === "" || id.length > limits.callId.maxLength) {
      const text = `Invalid '${path}.id': string too long. Expected a string with maximum length ${limits.callId.maxLength}, but got a string with length ${wireText(id).length} instead.`;
      this.fail("id-pattern", `${path}.id`, text);
    } else if (this.ids.has(id)) {
      this.fail("id-unique", `${path}.id`, `Duplicate value for 'tool_call_id' of ${id}`);
    }
    const key = wireText(id);
    this.ids.add(key);
    this.open.add(key);
    this.asked.add(key);
    if (!isWireFields(call) || call["type"] !== "function")
      this.fail("call-type", `${path}.type`, `Missing required parameter: '${path}.type'.`);
    if (!limits.toolName.allowed.test(wireText(described["name"]))) {
      const text = `Invalid '${path}.function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.`;
      this.fail("name-pattern", `${path}.function.name`, text);
    }
    const { arguments: given } = described;
    if (typeof given !== "string" || !isJson(given)) {
      this.fail(
        "input",
        `${path}.function.arguments`,
        `Invalid '${path}.function.arguments': expected a string of JSON.`,
      );
    }
  }

  private content(content: unknown, path: string, isUser: boolean): void {
    if (typeof content === "string") return;
    if (content === null || content === undefined) {
      this.fail("content", path, "Invalid value for 'content': expected a string, got null.");
    } else if (!Array.isArray(content) || content.length === 0) {
      this.fail("content", path, `Invalid '${path}.content': empty array.`);
    } else {
      for (const [place, part] of content.entries()) this.part(part, `${path}.content[${place}]`, isUser);
    }
  }

  private part(part: unknown, path: string, isUser: boolean): void {
    const type = isWireFields(part) ? wireText(part["type"]) : "";
    const taken = isUser ? ["text", "image_url", "input_audio", "file"] : ["text", "refusal"];
    if (!isWireFields(part) || !taken.includes(type)) {
      const list = taken.map((one) => `'${one}'`).join(", ");
      this.fail("block-type", path, `Invalid value: '${type}'. Supported values are: ${list}.`);
    } else if (type === "text" && typeof part["text"] !== "string") {
      this.fail("text", path, `Missing required parameter: '${path}.text'.`);
    } else if (type === "image_url") {
      const url = isWireFields(part["image_url"]) ? wireText(part["image_url"]["url"]) : "";
      if (!/^(?:https?:\/\/|data:image\/[a-z.+-]+;base64,[A-Za-z0-9+/=]+$)/.test(url))
        this.fail("image", path, `Missing required parameter: '${path}.image_url.url'.`);
    } else if (type === "file") {
      const file = isWireFields(part["file"]) ? part["file"] : {};
      if (typeof file["file_data"] !== "string" && typeof file["file_id"] !== "string")
        this.fail("file", path, `Missing required parameter: '${path}.file.file_id'.`);
    }
  }
}
