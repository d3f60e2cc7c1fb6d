import { describe, expect, it } from "vitest";
import type { AnthropicRendering } from "../src/render-anthropic.ts";
import { render, shape } from "./rendered-shape.ts";
import { assistant, call, compaction, result, text, user, type RecordSketch } from "./stored-records.ts";

describe("a history for Anthropic", () => {
  it("writes calls and results as the API does", () => {
    const { messages } = render([
      user("hi"),
      assistant("plain"),
      user("go"),
      assistant([call("t1")]),
      result("t1", "body"),
    ]);
    expect(messages[1]).toEqual({ role: "assistant", content: [{ type: "text", text: "plain" }] });
    expect(messages[3]).toEqual({
      role: "assistant",
      content: [{ type: "tool_use", id: "t1", name: "read", input: { path: "t1" } }],
    });
    expect(messages[4]).toEqual({
      role: "user",
      content: [{ type: "tool_result", tool_use_id: "t1", content: [{ type: "text", text: "body" }] }],
    });
  });

  it("says in a made-up result whether the tool may have run", () => {
    const said = (stopReason: string): string =>
      JSON.stringify(render([user("hi"), assistant([call("t1")], { stopReason })]).messages[2]);
    expect(said("toolUse")).toContain("may or may not have run");
    expect(said("length")).toContain("has not run");
  });

  it("shows an orphan result as text when asked to", () => {
    const records = [user("hi"), result("gone", "found it"), assistant("a")];
    expect(shape(render(records, { orphanResults: "text" }))[0]).toContain('"found it"');
    expect(JSON.stringify(render(records).messages)).not.toContain("found it");
  });

  it("maps ids the API refuses, each to one of its own, and back", () => {
    const ids = ["call|1", "call.1", "", "x".repeat(65), `${"x".repeat(64)}y`, "fine_1", "functions.read:0"];
    const records = ids.flatMap((id) => [assistant([call(id)]), result(id)]);
    const { messages, callIds } = render([user("hi"), ...records]);
    const sent = messages.flatMap((message) =>
      message.content.flatMap((block) => (block.type === "tool_use" ? [block.id] : [])),
    );
    expect(sent.every((id) => /^[a-zA-Z0-9_-]{1,64}$/.test(id))).toBe(true);
    expect(new Set(sent).size).toBe(ids.length);
    expect(sent.map((id) => callIds.get(id) ?? id)).toEqual(ids);
    expect(render([user("hi"), ...records.slice(2)]).callIds.get(sent[1] as string)).toBe("call.1");
  });

  it("keeps the words of users and results that stand in odd places", () => {
    const { messages } = render([
      user([text("a\ud800b")]),
      assistant([call("t", { path: "\udc00" })]),
      result("t", ""),
    ]);
    expect(messages[0]?.content).toEqual([{ type: "text", text: "a\ufffdb" }]);
    expect(messages[1]?.content).toMatchObject([{ input: { path: "\ufffd" } }]);
    expect(messages[2]?.content).toEqual([{ type: "tool_result", tool_use_id: "t" }]);
  });

  it("gives error results words, and takes images out of them", () => {
    const image = { type: "image", data: "aWs=", mimeType: "image/png" };
    const { messages } = render([
      user("hi"),
      assistant([call("t1"), call("t2")]),
      result("t1", [image], { isError: true }),
      result("t2", [image, { ...image, mimeType: "image/tiff" }]),
    ]);
    expect(messages[2]?.content).toEqual([
      {
        type: "tool_result",
        tool_use_id: "t1",
        content: [{ type: "text", text: "(The tool failed without a message.)" }],
        is_error: true,
      },
      {
        type: "tool_result",
        tool_use_id: "t2",
        content: [
          { type: "image", source: { type: "base64", media_type: "image/png", data: "aWs=" } },
          { type: "text", text: "[image left out: image/tiff]" },
        ],
      },
      { type: "image", source: { type: "base64", media_type: "image/png", data: "aWs=" } },
    ]);
  });

  it("treats an assistant message at the end as asked", () => {
    const records = [user("hi"), assistant("bye \n")];
    expect(shape(render(records))).toEqual(['U "hi"', 'A "bye"']);
    expect(shape(render(records, { trailingAssistant: "remove" }))).toEqual(['U "hi"']);
    expect(shape(render(records, { trailingAssistant: "continue" }))).toEqual([
      'U "hi"',
      'A "bye \\n"',
      'U "Continue."',
    ]);
  });

  it("replaces what was redacted and stays valid, calls and results alike", () => {
    const tombstone: RecordSketch = {
      type: "custom",
      customType: "throughline.redaction",
      v: 1,
      data: { originalType: "message", redactedAtMs: 1, side: false },
    };
    const marker = '"[A message that stood here was removed from the history.]"';
    expect(shape(render([user("hi"), assistant([call("t1")]), tombstone, assistant("a")]))).toEqual([
      'U "hi"',
      "A ?t1",
      `U !t1 ${marker}`,
      'A "a"',
    ]);
    expect(shape(render([user("hi"), tombstone, result("t1"), assistant("a")]))).toEqual([`U "hi" ${marker}`, 'A "a"']);
  });
});

describe("the summary", () => {
  it("is a user message, answered only when a user message follows [C29b]", () => {
    const talk = [user("one"), assistant("two"), user("three")];
    expect(shape(render([...talk, compaction("r3", "sum")]))).toEqual([
      'U "[Previous conversation summary]\\nsum"',
      'A "Understood, I have the context."',
      'U "three"',
    ]);
    expect(shape(render([...talk, compaction("r2", "sum")], { summaryPrefix: "[So far]" }))).toEqual([
      'U "[So far]\\nsum"',
      'A "two"',
      'U "three"',
    ]);
    expect(shape(render([...talk, compaction("r4", "sum")]))).toEqual(['U "[Previous conversation summary]\\nsum"']);
  });

  it("takes no answer for a result whose call was summarized", () => {
    const records = [user("one"), assistant([call("t1")]), result("t1"), assistant("two"), compaction("r3", "sum")];
    expect(shape(render(records))).toEqual(['U "[Previous conversation summary]\\nsum"', 'A "two"']);
  });
});

describe("thinking", () => {
  const thought = { type: "thinking", thinking: "hm", thinkingSignature: "sig" };
  const kinds = (rendering: AnthropicRendering): string[] =>
    rendering.messages.flatMap((message) => message.content.map((block) => block.type));

  it("stays with its signature for the model that signed it", () => {
    const redacted = { type: "thinking", thinking: "", thinkingSignature: "opaque", redacted: true };
    const { messages } = render([user("hi"), assistant([thought, redacted, text("a")])]);
    expect(messages[1]?.content.slice(0, 2)).toEqual([
      { type: "thinking", thinking: "hm", signature: "sig" },
      { type: "redacted_thinking", data: "opaque" },
    ]);
  });

  it("goes for another model, without a signature, and before a compaction or an edit", () => {
    const answer = assistant([thought, text("a")], {}, { id: "a" });
    expect(kinds(render([user("hi"), answer], { target: { provider: "anthropic", modelId: "other" } }))).toEqual([
      "text",
      "text",
    ]);
    expect(kinds(render([user("hi"), answer], { target: null }))).toEqual(["text", "text"]);
    expect(kinds(render([user("hi"), assistant([{ type: "thinking", thinking: "hm" }, text("a")])]))).toEqual([
      "text",
      "text",
    ]);
    expect(kinds(render([user("hi"), answer, compaction("a")]))).toEqual(["text", "text"]);
    expect(
      kinds(
        render([
          user("hi", { id: "u" }),
          answer,
          { type: "context_edit", targetId: "u", replacement: { content: "ho" } },
        ]),
      ),
    ).toEqual(["text", "text"]);
  });

  it("never ends a message, and is no message alone", () => {
    expect(kinds(render([user("hi"), assistant([text("a"), thought]), user("b"), assistant([thought])]))).toEqual([
      "text",
      "text",
      "text",
    ]);
    expect(kinds(render([user("hi"), assistant([call("t")]), assistant([thought, call("t")]), result("t")]))).toEqual([
      "text",
      "tool_use",
      "tool_result",
    ]);
  });
});
