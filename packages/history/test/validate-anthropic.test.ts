import { describe, expect, it } from "vitest";
import { validateAnthropic } from "@throughline/history/anthropic";

const user = (...content: unknown[]): unknown => ({ role: "user", content });
const assistant = (...content: unknown[]): unknown => ({ role: "assistant", content });
const hi = { type: "text", text: "hi" };
const use = (id: string): unknown => ({ type: "tool_use", id, name: "read", input: {} });
const answer = (id: string, more: object = {}): unknown => ({
  type: "tool_result",
  tool_use_id: id,
  content: "ok",
  ...more,
});

describe("validateAnthropic", () => {
  it("takes what the API takes", () => {
    const thinking = { type: "thinking", thinking: "", signature: "s" };
    const reply = assistant(thinking, { type: "redacted_thinking", data: "d" }, hi, use("a"), use("b"));
    const image = { type: "image", source: { type: "url", url: "https://example.com/a.png" } };
    const answers = user(answer("b"), answer("a", { is_error: true, content: [hi] }), image, hi);
    expect(validateAnthropic([{ role: "user", content: "plain" }, reply, answers, assistant(hi)])).toEqual([]);
  });

  it.each<[rule: string, messages: readonly unknown[], text: string]>([
    ["at-least-one", [], "at least one message is required"],
    ["role", [{ role: "system", content: "x" }], "Input should be 'user' or 'assistant'"],
    ["first-is-user", [assistant(hi)], "first message must use"],
    ["alternation", [user(hi), user(hi)], "roles must alternate"],
    ["content-not-empty", [user()], "must have non-empty content"],
    ["content-not-empty", [{ role: "user", content: "" }], "must have non-empty content"],
    ["text-not-empty", [user({ type: "text", text: "" })], "text content blocks must be non-empty"],
    ["text-not-blank", [user({ type: "text", text: " \n" })], "must contain non-whitespace text"],
    ["text", [user({ type: "text" })], "valid string"],
    ["block-type", [user({ type: "tool_use", id: "a", name: "n", input: {} })], "does not match"],
    ["block-type", [user(hi), assistant(answer("a"))], "does not match"],
    [
      "block-type",
      [user(hi), assistant(use("a")), user(answer("a", { content: [{ type: "thinking" }] }))],
      "text or image",
    ],
    [
      "call-answered",
      [user(hi), assistant(use("a"))],
      "`tool_use` ids were found without `tool_result` blocks immediately after: a",
    ],
    ["call-answered", [user(hi), assistant(use("a"), use("b")), user(answer("a"))], "immediately after: b"],
    ["call-answered", [user(hi), assistant(use("a")), user(hi, answer("a"))], "immediately after: a"],
    ["result-asked-for", [user(answer("a"))], "unexpected `tool_use_id` found in `tool_result` blocks: a"],
    [
      "result-asked-for",
      [user(hi), assistant(use("a")), user(answer("a")), assistant(hi), user(answer("a"))],
      "unexpected `tool_use_id`",
    ],
    ["single-result", [user(hi), assistant(use("a")), user(answer("a"), answer("a"))], "single result"],
    ["id-unique", [user(hi), assistant(use("a"), use("a")), user(answer("a"))], "ids must be unique"],
    ["id-pattern", [user(hi), assistant(use("a|b")), user(answer("a|b"))], "should match pattern"],
    ["id-pattern", [user(hi), assistant(use("x".repeat(65))), user(answer("x".repeat(65)))], "should match pattern"],
    [
      "name-pattern",
      [user(hi), assistant({ type: "tool_use", id: "a", name: "a b", input: {} }), user(answer("a"))],
      "should match pattern",
    ],
    [
      "input",
      [user(hi), assistant({ type: "tool_use", id: "a", name: "n", input: "x" }), user(answer("a"))],
      "valid dictionary",
    ],
    ["thinking-signature", [user(hi), assistant({ type: "thinking", thinking: "x" }, hi)], "signature: Field required"],
    ["thinking-signature", [user(hi), assistant({ type: "redacted_thinking" }, hi)], "data: Field required"],
    [
      "last-not-thinking",
      [user(hi), assistant(hi, { type: "thinking", thinking: "x", signature: "s" })],
      "cannot be `thinking`",
    ],
    [
      "error-content",
      [user(hi), assistant(use("a")), user(answer("a", { is_error: true, content: [] }))],
      "cannot be empty",
    ],
    [
      "error-content",
      [user(hi), assistant(use("a")), user(answer("a", { is_error: true, content: [{ type: "image", source: {} }] }))],
      'must be type "text"',
    ],
    ["image", [user({ type: "image" })], "source: Field required"],
    ["trailing-space", [user(hi), assistant({ type: "text", text: "a " })], "cannot end with trailing whitespace"],
    ["json", [user({ type: "text", text: "\ud800" })], "no low surrogate"],
  ])("refuses %s", (rule, messages, text) => {
    const found = validateAnthropic(messages);
    expect(found.map((violation) => violation.rule)).toContain(rule);
    expect(found.find((violation) => violation.rule === rule)?.text).toContain(text);
  });

  it("refuses an assistant message at the end where the model does", () => {
    const messages = [user(hi), assistant(hi)];
    expect(validateAnthropic(messages)).toEqual([]);
    expect(validateAnthropic(messages, { allowsPrefill: false }).map((found) => found.rule)).toEqual(["prefill"]);
  });
});
