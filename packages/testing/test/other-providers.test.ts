import { describe, expect, it } from "vitest";
import { checkBedrockConverse } from "../src/rules/bedrock-converse.ts";
import { checkGemini } from "../src/rules/gemini.ts";
import { checkMistral } from "../src/rules/mistral.ts";
import type { Violation } from "../src/violation.ts";
import type { Body } from "./refusal-case.ts";

type Case = readonly [title: string, bad: Body, says: string, good: Body];

function runCases(check: (body: Body) => Violation | null, cases: readonly Case[]): void {
  it.each(cases)("%s", (_title, bad, says, good) => {
    expect(check(bad)).toMatchObject({ status: 400, message: says });
    expect(check(good)).toBeNull();
  });
}

describe("Gemini", () => {
  const contents = (...list: readonly Body[]): Body => ({ contents: list });
  const user = { role: "user", parts: [{ text: "Hi" }] };
  const calls = (...names: readonly string[]): Body => ({
    role: "model",
    parts: names.map((name) => ({ functionCall: { name, args: {} }, thoughtSignature: "s" })),
  });
  const responses = (...names: readonly string[]): Body => ({
    role: "user",
    parts: names.map((name) => ({ functionResponse: { name, response: {} } })),
  });
  const said = { role: "model", parts: [{ text: "Yes" }] };
  const unsigned = { role: "model", parts: [{ functionCall: { name: "a", args: {} } }] };
  const good = contents(user, calls("a"), responses("a"));
  const unequal =
    "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.";
  const misplaced =
    "Please ensure that function call turn comes immediately after a user turn or after a function response turn.";
  const declared = (...names: readonly string[]): Body => ({
    ...good,
    tools: [{ functionDeclarations: names.map((name) => ({ name })) }],
  });

  runCases(
    (body) => checkGemini(body, "gemini-3-pro"),
    [
      ["no contents", {}, "* GenerateContentRequest.contents: contents is not specified", good],
      [
        "a role of its own",
        contents({ role: "assistant", parts: [{ text: "x" }] }),
        "Please use a valid role: user, model.",
        good,
      ],
      [
        "no parts",
        contents({ role: "user", parts: [] }),
        "* GenerateContentRequest.contents[0].parts: contents.parts must not be empty.",
        good,
      ],
      [
        "a part without data",
        contents({ role: "user", parts: [{}] }),
        "* GenerateContentRequest.contents[0].parts[0].data: required oneof field 'data' must have one initialized field",
        good,
      ],
      [
        "a call without name",
        contents(user, calls("")),
        "* GenerateContentRequest.contents[1].parts[0].function_call.name: Name cannot be empty.",
        good,
      ],
      [
        "one response to two calls",
        contents(user, calls("a", "b"), responses("a")),
        unequal,
        contents(user, calls("a", "b"), responses("b", "a")),
      ],
      ["a call left open", contents(user, calls("a"), user), unequal, good],
      ["a call first", contents(calls("a"), responses("a")), misplaced, good],
      [
        "a call after the model's text",
        contents(user, said, calls("a"), responses("a")),
        misplaced,
        contents(user, said, user, calls("a"), responses("a")),
      ],
      [
        "a response without call",
        contents(user, responses("a")),
        "Please ensure that function response turn comes immediately after a function call turn.",
        good,
      ],
      [
        "a response of another name",
        contents(user, calls("a"), responses("b")),
        "Please ensure that the function response names match the names of the function call turn.",
        good,
      ],
      [
        "a call without signature",
        contents(user, unsigned, responses("a")),
        "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance.",
        contents(user, unsigned, responses("a"), said, user),
      ],
      [
        "a part that is text",
        contents({ role: "user", parts: ["Hi"] }),
        "Invalid value at 'GenerateContentRequest.contents[0].parts[0]' (type.googleapis.com/google.ai.generativelanguage.v1beta.Part)",
        good,
      ],
      ["a content that is text", { contents: ["Hi"] }, "Invalid value at 'contents[0]'", good],
      [
        "a part with two kinds of data",
        contents({ role: "user", parts: [{ text: "a", inlineData: {} }] }),
        "Invalid value at 'GenerateContentRequest.contents[0].parts[0]' (oneof), oneof field 'data' is already set. Cannot set 'inlineData'",
        good,
      ],
      ["a function declared twice", declared("a", "a"), "Duplicate function declaration found: a", declared("a", "b")],
    ],
  );

  it("wants no signatures of older models", () => {
    expect(checkGemini(contents(user, unsigned, responses("a")), "gemini-2.5-pro")).toBeNull();
  });
});

describe("Bedrock's Converse", () => {
  const toolConfig = { tools: [{ toolSpec: { name: "look" } }] };
  const converse = (...messages: readonly Body[]): Body => ({ messages, toolConfig });
  const user = { role: "user", content: [{ text: "Hi" }] };
  const said = { role: "assistant", content: [{ text: "Yes" }] };
  const calls = (...ids: readonly string[]): Body => ({
    role: "assistant",
    content: ids.map((toolUseId) => ({ toolUse: { toolUseId, name: "look", input: {} } })),
  });
  const results = (...ids: readonly string[]): Body => ({
    role: "user",
    content: ids.map((toolUseId) => ({ toolResult: { toolUseId, content: [] } })),
  });
  const good = converse(user, calls("t1"), results("t1"));
  const expected = (index: number, ids: string): string =>
    `Expected toolResult blocks at messages.${index}.content for the following Ids: ${ids}`;

  runCases(checkBedrockConverse, [
    [
      "a role of its own",
      converse(user, { role: "tool", content: [] }),
      "1 validation error detected: Value 'tool' at 'messages.role' failed to satisfy constraint: Member must satisfy enum value set: [user, assistant]",
      good,
    ],
    [
      "a block that is text",
      converse({ role: "user", content: ["Hi"] }),
      "The value at messages.0.content.0 is not a ContentBlock object.",
      good,
    ],
    [
      "a block of two kinds",
      converse({ role: "user", content: [{ text: "a", image: {} }] }),
      "The ContentBlock object at messages.0.content.0 must set one of the following keys: text, image, toolUse, toolResult.",
      good,
    ],
    [
      "an id with a colon",
      converse(user, calls("t:1"), results("t:1")),
      "1 validation error detected: Value 't:1' at 'messages.1.content.0.toolUse.toolUseId' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+",
      good,
    ],
    [
      "input as a string",
      converse(
        user,
        { role: "assistant", content: [{ toolUse: { toolUseId: "t1", name: "look", input: "{}" } }] },
        results("t1"),
      ),
      "The format of the value at messages.1.content.0.toolUse.input is invalid. Provide a json object for the field and try again.",
      good,
    ],
    [
      "assistant first",
      converse(said, user),
      "A conversation must start with a user message. Try again with a conversation that starts with a user message.",
      converse(user, said),
    ],
    [
      "two user messages",
      converse(user, user),
      "A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and assistant roles and try again.",
      converse(user, said, user),
    ],
    [
      "blank text",
      converse({ role: "user", content: [{ text: " " }] }),
      "The text field in the ContentBlock object at messages.0.content.0 is blank. Add text to the text field, and try again.",
      converse(user),
    ],
    [
      "an empty message",
      converse({ role: "user", content: [] }),
      "The content field in the Message object at messages.0 is empty. Add a ContentBlock object to the content field and try again.",
      converse(user),
    ],
    ["a call left open", converse(user, calls("t1"), user), expected(2, "t1"), good],
    [
      "one of two calls left open",
      converse(user, calls("t1", "t2"), results("t1")),
      expected(2, "t2"),
      converse(user, calls("t1", "t2"), results("t2", "t1")),
    ],
    ["a call at the end", converse(user, calls("t1")), expected(2, "t1"), good],
    [
      "a result without call",
      converse(user, said, results("t1")),
      "The number of toolResult blocks at messages.2.content exceeds the number of toolUse blocks of previous turn.",
      good,
    ],
    [
      "one id for two calls",
      converse(user, calls("t1", "t1"), results("t1")),
      "The toolUse blocks at messages.1.content contain duplicate Ids: t1",
      good,
    ],
    [
      "no tool configuration",
      { messages: good["messages"] },
      "The toolConfig field must be defined when using toolUse and toolResult content blocks.",
      good,
    ],
  ]);
});

describe("Mistral", () => {
  const chat = (...messages: readonly Body[]): Body => ({ messages });
  const user = { role: "user", content: "Hi" };
  const said = { role: "assistant", content: "Yes" };
  const calls = (...ids: readonly string[]): Body => ({
    role: "assistant",
    content: "",
    tool_calls: ids.map((id) => ({ id, function: { name: "look", arguments: "{}" } })),
  });
  const answer = (id: string): Body => ({ role: "tool", tool_call_id: id, content: "found" });
  const [a, b] = ["aaaaaaaa1", "bbbbbbbb2"];
  const good = chat(user, calls(a), answer(a));
  const unequal = "Not the same number of function calls and responses";

  runCases(checkMistral, [
    [
      "arguments cut off",
      chat(
        user,
        { role: "assistant", content: "", tool_calls: [{ id: a, function: { name: "look", arguments: "{" } }] },
        answer(a),
      ),
      "Tool call arguments must be valid JSON.",
      good,
    ],
    [
      "the assistant last",
      chat(user, said),
      "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant",
      chat(user, { ...said, prefix: true }),
    ],
    [
      "a long id",
      chat(user, calls("call_12345"), answer("call_12345")),
      "Tool call id was call_12345 but must be a-z, A-Z, 0-9, with a length of 9.",
      good,
    ],
    [
      "a user after a result",
      chat(user, calls(a), answer(a), user),
      "Unexpected role 'user' after role 'tool'",
      chat(user, calls(a), answer(a), said, user),
    ],
    ["a result after the user", chat(user, answer(a)), "Unexpected role 'tool' after role 'user'", good],
    [
      "one of two calls left open",
      chat(user, calls(a, b), answer(a)),
      unequal,
      chat(user, calls(a, b), answer(a), answer(b)),
    ],
    ["a result after plain text", chat(user, said, answer(a)), unequal, good],
    ["a result of another call", chat(user, calls(a), answer(b)), `Unexpected tool call id ${b} in tool results`, good],
    [
      "an empty assistant message",
      chat(user, { role: "assistant", content: "" }, user),
      "Assistant message must have either content or tool_calls, but not none.",
      chat(user, said, user),
    ],
  ]);
});
