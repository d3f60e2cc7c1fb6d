import { runSteps, type Steps } from "@throughline/core/internal";
import { ViolationList, type Violation } from "./violation.ts";
import { hasLoneSurrogate, isWireFields, surrogateText, wireList, wireRole, wireText } from "./wire-values.ts";
import type { WireFields } from "./wire-values.ts";

/**
 * Checks the messages of an Ollama chat request. The server itself checks only types. This function also requires that
 * tool messages follow their calls, because the models' templates expect that order.
 */
export function validateOllama(messages: readonly unknown[]): readonly Violation[] {
  return runSteps(ollamaSteps(messages));
}

/** Checks like `validateOllama`, one message per step, so that a long list does not block the process. */
export function* ollamaSteps(messages: readonly unknown[]): Steps<readonly Violation[]> {
  const check = new OllamaCheck();
  if (messages.length === 0) check.fail("at-least-one", "messages", "messages: nothing to answer");
  for (const [index, message] of messages.entries()) {
    check.message(message, index);
    yield;
  }
  check.end(messages.length);
  return check.found;
}

class OllamaCheck extends ViolationList {
  /** Lists the tool names of unanswered calls in order, because Ollama matches results by name and order. */
  private open: string[] = [];
  private answered = 0;

  message(message: unknown, index: number): void {
    const path = `messages.${index}`;
    const role = wireRole(message);
    if (!isWireFields(message) || !["system", "user", "assistant", "tool"].includes(role)) {
      this.fail("role", path, `invalid role ${JSON.stringify(role)}`);
      return;
    }
    if (hasLoneSurrogate(message)) this.fail("json", path, surrogateText);
    for (const field of ["content", "thinking", "tool_name"]) this.text(message, field, path);
    if (message["images"] !== undefined) this.images(message["images"], path);
    if (role === "tool") {
      this.answer(message, path);
      return;
    }
    this.unanswered(index);
    if (role === "assistant" && message["tool_calls"] !== undefined) this.calls(message["tool_calls"], path);
  }

  end(length: number): void {
    this.unanswered(length);
  }

  private decode(value: unknown, field: string, type: string, path: string): void {
    const found = Array.isArray(value) ? "array" : typeof value === "boolean" ? "bool" : typeof value;
    const text = `json: cannot unmarshal ${found} into Go struct field ChatRequest.messages.${field} of type ${type}`;
    this.fail("type", `${path}.${field}`, text);
  }

  private text(message: WireFields, field: string, path: string): void {
    const value = message[field];
    if (value === undefined ? field === "content" : typeof value !== "string")
      this.decode(value, field, "string", path);
  }

  private images(images: unknown, path: string): void {
    if (!Array.isArray(images)) this.decode(images, "images", "[]api.ImageData", path);
    for (const image of wireList(images)) {
      const at = wireText(image).search(/[^A-Za-z0-9+/=]/);
      if (typeof image !== "string" || image === "" || at >= 0)
        this.fail("image", `${path}.images`, `illegal base64 data at input byte ${Math.max(at, 0)}`);
    }
  }

  private calls(calls: unknown, path: string): void {
    if (!Array.isArray(calls)) this.decode(calls, "tool_calls", "[]api.ToolCall", path);
    for (const call of wireList(calls)) {
      const described = isWireFields(call) && isWireFields(call["function"]) ? call["function"] : {};
      if (typeof described["name"] !== "string" || described["name"] === "")
        this.decode(described["name"], "tool_calls.function.name", "string", path);
      if (!isWireFields(described["arguments"])) {
        const type = "api.ToolCallFunctionArguments";
        this.decode(described["arguments"], "tool_calls.function.arguments", type, path);
      }
      this.open.push(wireText(described["name"]));
    }
  }

  private answer(message: WireFields, path: string): void {
    const expected = this.open[this.answered++];
    if (expected === undefined) this.fail("result-asked-for", path, "a tool message follows no call");
    else if (message["tool_name"] !== undefined && message["tool_name"] !== expected)
      this.fail(
        "result-order",
        path,
        `the result of ${wireText(message["tool_name"])} stands where that of ${expected} is due`,
      );
  }

  private unanswered(index: number): void {
    const left = this.open.slice(this.answered);
    if (left.length > 0)
      this.fail("call-answered", `messages.${index}`, `no tool message for the calls of ${left.join(", ")}`);
    this.open = [];
    this.answered = 0;
  }
}
