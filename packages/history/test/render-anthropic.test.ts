import { describe, expect, it } from "vitest";
import { buildContext, renderAnthropic, validateAnthropic } from "@throughline/history";
import type { AnthropicBlock, AnthropicRendering, AnthropicRenderOptions } from "@throughline/history";
import { assistant, call, compaction, result, storedRecords, text, user, type RecordSketch } from "./stored-records.ts";

function render(sketches: readonly RecordSketch[], options: AnthropicRenderOptions = {}): AnthropicRendering {
  const rendering = renderAnthropic(buildContext(storedRecords(sketches)), options);
  expect(validateAnthropic(rendering.messages)).toEqual([]);
  return rendering;
}

/** One line a message: `U` or `A` and its blocks; calls as `?id`, results as `=id`, made-up ones as `!id`. */
function shape(rendering: AnthropicRendering): string[] {
  return rendering.messages.map((message) => `${message.role === "user" ? "U" : "A"} ${message.content.map(blockShape).join(" ")}`);
}

function blockShape(block: AnthropicBlock): string {
  switch (block.type) {
    case "text":
      return JSON.stringify(block.text);
    case "tool_use":
      return `?${block.id}`;
    case "tool_result":
      return `${block.is_error === true ? "!" : "="}${block.tool_use_id}`;
    default:
      return block.type;
  }
}

const rules = (rendering: AnthropicRendering): string[] => rendering.repairs.map((repair) => `${repair.rule} ${repair.recordId}`);

/** As the flat records of the tutorials come out of their reader: no model, no stop reason. */
function flat(content: unknown): RecordSketch {
  return { type: "message", message: { role: "assistant", content } };
}

/** A call that has a record of its own. */
function ownCall(id: string): RecordSketch {
  return { type: "message", message: { role: "assistant", content: [call(id)], fragment: true } };
}

interface Case {
  readonly title: string;
  readonly records: readonly RecordSketch[];
  readonly messages: readonly string[];
  readonly repairs?: readonly string[];
}

const cases: readonly Case[] = [
  {
    title: "a valid history stays as it is [HIS-02, HIS-05]",
    records: [user("hi"), assistant([text("a"), call("t1"), call("t2")]), result("t2"), result("t1"), assistant("done")],
    messages: ['U "hi"', 'A "a" ?t1 ?t2', "U =t2 =t1", 'A "done"'],
  },
  {
    title: "calls one after the other stay apart [HIS-09]",
    records: [user("hi"), assistant([call("t1")]), result("t1"), assistant([call("t2")]), result("t2")],
    messages: ['U "hi"', "A ?t1", "U =t1", "A ?t2", "U =t2"],
  },
  {
    title: "a call record joins the assistant text before it, or begins a message of its own [HIS-04]",
    records: [user("hi"), flat([text("a")]), ownCall("t1"), result("t1"), user("more"), ownCall("t2"), result("t2")],
    messages: ['U "hi"', 'A "a" ?t1', 'U =t1 "more"', "A ?t2", "U =t2"],
    repairs: ["assistant-merged r3", "user-merged r5"],
  },
  {
    title: "call records in a row become one message before their results [HIS-07]",
    records: [user("hi"), ownCall("t1"), ownCall("t2"), result("t1"), result("t2"), flat("done")],
    messages: ['U "hi"', "A ?t1 ?t2", "U =t1 =t2", 'A "done"'],
    repairs: ["assistant-merged r3"],
  },
  {
    title: "a call in its reply and in a record of its own is sent once [HIS-11, REC-05]",
    records: [user("hi"), flat([text("a"), call("t1")]), ownCall("t1"), result("t1"), flat([call("t2")]), ownCall("t2"), result("t2"), flat("done")],
    messages: ['U "hi"', 'A "a" ?t1', "U =t1", "A ?t2", "U =t2", 'A "done"'],
    repairs: ["duplicate-call r3", "duplicate-call r6"],
  },
  {
    title: "parallel calls stored in turn with their results, and also in their reply, become one reply and one answer [HIS-11, HIS-12]",
    records: [user("hi"), flat([text("a"), call("t1"), call("t2")]), ownCall("t1"), result("t1"), ownCall("t2"), result("t2"), flat("done")],
    messages: ['U "hi"', 'A "a" ?t1 ?t2', "U =t1 =t2", 'A "done"'],
    repairs: ["duplicate-call r3", "duplicate-call r5"],
  },
  {
    title: "parallel calls stored only in turn with their results become one reply and one answer [HIS-12]",
    records: [user("hi"), ownCall("t1"), result("t1"), ownCall("t2"), result("t2"), flat("done")],
    messages: ['U "hi"', "A ?t1 ?t2", "U =t1 =t2", 'A "done"'],
    repairs: ["assistant-merged r4"],
  },
  {
    title: "parts that bear one reply id are one reply [HIS-12]",
    records: [user("hi"), assistant([call("t1")], { responseId: "m1" }), result("t1"), assistant([call("t2")], { responseId: "m1" }), result("t2")],
    messages: ['U "hi"', "A ?t1 ?t2", "U =t1 =t2"],
    repairs: ["assistant-merged r4"],
  },
  {
    title: "results stored before the user and call records go to their calls [HIS-13]",
    records: [result("t1"), result("t2"), user("hi"), flat([text("a")]), ownCall("t1"), ownCall("t2"), flat("done")],
    messages: ['U "hi"', 'A "a" ?t1 ?t2', "U =t1 =t2", 'A "done"'],
    repairs: ["result-moved r1", "result-moved r2", "assistant-merged r5", "assistant-merged r6"],
  },
  {
    title: "a result behind a user message goes home, before the user's text [HIS-05]",
    records: [user("hi"), assistant([call("t1")]), user("wait"), result("t1")],
    messages: ['U "hi"', "A ?t1", 'U =t1 "wait"'],
    repairs: ["result-moved r4", "user-merged r3"],
  },
  {
    title: "a result that may belong to two calls belongs to none",
    records: [user("a"), assistant([call("x", { n: 1 })]), user("b"), assistant([call("x", { n: 2 })]), user("c"), result("x")],
    messages: ['U "a"', "A ?x", 'U !x "b"', "A ?x_2", 'U !x_2 "c"'],
    repairs: ["orphan-result r6", "result-synthesized r2", "user-merged r3", "call-id-changed r4", "result-synthesized r4", "user-merged r5"],
  },
  {
    title: "ids that a provider uses again stay with their own results",
    records: [user("a"), assistant([call("c0")]), result("c0", "first"), assistant([call("c0")]), result("c0", "second")],
    messages: ['U "a"', "A ?c0", "U =c0", "A ?c0_2", "U =c0_2"],
    repairs: ["call-id-changed r4"],
  },
  {
    title: "calls without a result are answered, at the end of the log too [HIS-14, HIS-21, C58]",
    records: [user("hi"), flat([text("a")]), ownCall("t1"), ownCall("t2")],
    messages: ['U "hi"', 'A "a" ?t1 ?t2', "U !t1 !t2"],
    repairs: ["assistant-merged r3", "assistant-merged r4", "result-synthesized r3", "result-synthesized r4"],
  },
  {
    title: "a crashed turn is closed before the reply that came after it",
    records: [user("hi"), assistant([call("t1")]), assistant("back again")],
    messages: ['U "hi"', "A ?t1", "U !t1", 'A "back again"'],
    repairs: ["result-synthesized r2"],
  },
  {
    title: "orphan and further results are left out [HIS-14]",
    records: [user("hi"), result("gone"), assistant([call("t1")]), result("t1"), result("t1", "again")],
    messages: ['U "hi"', "A ?t1", "U =t1"],
    repairs: ["orphan-result r2", "duplicate-result r5"],
  },
  {
    title: "a failed turn goes whole, with its results",
    records: [user("hi"), assistant([text("half"), call("t1")], { stopReason: "aborted" }), result("t1"), assistant("", { stopReason: "error" }), user("again")],
    messages: ['U "hi" "again"'],
    repairs: ["failed-turn-dropped r2", "failed-turn-dropped r4", "result-of-dropped-turn r3", "user-merged r5"],
  },
  {
    title: "a history that begins with the assistant gets a user message first [HIS-19]",
    records: [assistant("hello")],
    messages: ['U "(The conversation goes on from here.)"', 'A "hello"'],
    repairs: ["bootstrap-added r1"],
  },
  {
    title: "empty texts and messages go, assistant text stays [HIS-19, HIS-21]",
    records: [user([text(""), text("hi")]), assistant([text(" \n"), text("a")]), user(""), assistant([])],
    messages: ['U "hi"', 'A "a"'],
    repairs: ["empty-text-removed r1", "empty-text-removed r2", "empty-message-removed r3", "empty-message-removed r4"],
  },
  {
    title: "two user messages in a row become one, whichever shape they have [HIS-01]",
    records: [user("plain"), user([text("blocks")]), assistant("a"), assistant([text("b")])],
    messages: ['U "plain" "blocks"', 'A "a" "b"'],
    repairs: ["user-merged r2", "assistant-merged r4"],
  },
];

describe("a history for Anthropic", () => {
  it.each(cases)("$title", ({ records, messages, repairs = [] }) => {
    const rendering = render(records);
    expect(shape(rendering)).toEqual(messages);
    expect(rules(rendering).toSorted()).toEqual([...repairs].toSorted());
  });

  it("writes calls and results as the API does [HIS-03, HIS-08, HIS-09]", () => {
    const { messages } = render([user("hi"), assistant("plain"), user("go"), assistant([call("t1")]), result("t1", "body")]);
    expect(messages[1]).toEqual({ role: "assistant", content: [{ type: "text", text: "plain" }] });
    expect(messages[3]).toEqual({ role: "assistant", content: [{ type: "tool_use", id: "t1", name: "read", input: { path: "t1" } }] });
    expect(messages[4]).toEqual({ role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: [{ type: "text", text: "body" }] }] });
  });

  it("says in a made-up result whether the tool may have run [HIS-14]", () => {
    const said = (stopReason: string): string => JSON.stringify(render([user("hi"), assistant([call("t1")], { stopReason })]).messages[2]);
    expect(said("toolUse")).toContain("may or may not have run");
    expect(said("length")).toContain("has not run");
  });

  it("shows an orphan result as text when asked to [HIS-14]", () => {
    const records = [user("hi"), result("gone", "found it"), assistant("a")];
    expect(shape(render(records, { orphanResults: "text" }))[0]).toContain('"found it"');
    expect(JSON.stringify(render(records).messages)).not.toContain("found it");
  });

  it("maps ids the API refuses, each to one of its own, and back [HIS-19]", () => {
    const ids = ["call|1", "call.1", "", "x".repeat(65), `${"x".repeat(64)}y`, "fine_1", "functions.read:0"];
    const records = ids.flatMap((id) => [assistant([call(id)]), result(id)]);
    const { messages, callIds } = render([user("hi"), ...records]);
    const sent = messages.flatMap((message) => message.content.flatMap((block) => (block.type === "tool_use" ? [block.id] : [])));
    expect(sent.every((id) => /^[a-zA-Z0-9_-]{1,64}$/.test(id))).toBe(true);
    expect(new Set(sent).size).toBe(ids.length);
    expect(sent.map((id) => callIds.get(id) ?? id)).toEqual(ids);
    expect(render([user("hi"), ...records.slice(2)]).callIds.get(sent[1] as string)).toBe("call.1");
  });

  it("keeps the words of users and results that stand in odd places", () => {
    const { messages } = render([user([text("a\ud800b")]), assistant([call("t", { path: "\udc00" })]), result("t", "")]);
    expect(messages[0]?.content).toEqual([{ type: "text", text: "a\ufffdb" }]);
    expect(messages[1]?.content).toMatchObject([{ input: { path: "\ufffd" } }]);
    expect(messages[2]?.content).toEqual([{ type: "tool_result", tool_use_id: "t" }]);
  });

  it("gives error results words, and takes images out of them", () => {
    const image = { type: "image", data: "aWs=", mimeType: "image/png" };
    const { messages } = render([user("hi"), assistant([call("t1"), call("t2")]), result("t1", [image], { isError: true }), result("t2", [image, { ...image, mimeType: "image/tiff" }])]);
    expect(messages[2]?.content).toEqual([
      { type: "tool_result", tool_use_id: "t1", content: [{ type: "text", text: "(The tool failed without a message.)" }], is_error: true },
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
    expect(shape(render(records, { trailingAssistant: "continue" }))).toEqual(['U "hi"', 'A "bye \\n"', 'U "Continue."']);
  });

  it("replaces what was redacted and stays valid, calls and results alike", () => {
    const tombstone: RecordSketch = { type: "custom", customType: "throughline.redaction", v: 1, data: { originalType: "message", redactedAtMs: 1, side: false } };
    const marker = '"[A message that stood here was removed from the history.]"';
    expect(shape(render([user("hi"), assistant([call("t1")]), tombstone, assistant("a")]))).toEqual(['U "hi"', "A ?t1", `U !t1 ${marker}`, 'A "a"']);
    expect(shape(render([user("hi"), tombstone, result("t1"), assistant("a")]))).toEqual([`U "hi" ${marker}`, 'A "a"']);
  });
});

describe("the summary", () => {
  it("is a user message, answered only when a user message follows", () => {
    const talk = [user("one"), assistant("two"), user("three")];
    expect(shape(render([...talk, compaction("r3", "sum")]))).toEqual([
      'U "[Previous conversation summary]\\nsum"',
      'A "Understood, I have the context."',
      'U "three"',
    ]);
    expect(shape(render([...talk, compaction("r2", "sum")], { summaryPrefix: "[So far]" }))).toEqual(['U "[So far]\\nsum"', 'A "two"', 'U "three"']);
    expect(shape(render([...talk, compaction("r4", "sum")]))).toEqual(['U "[Previous conversation summary]\\nsum"']);
  });

  it("takes no answer for a result whose call was summarised", () => {
    const records = [user("one"), assistant([call("t1")]), result("t1"), assistant("two"), compaction("r3", "sum")];
    expect(shape(render(records))).toEqual(['U "[Previous conversation summary]\\nsum"', 'A "two"']);
  });
});

describe("thinking", () => {
  const thought = { type: "thinking", thinking: "hm", thinkingSignature: "sig" };
  const kinds = (rendering: AnthropicRendering): string[] => rendering.messages.flatMap((message) => message.content.map((block) => block.type));

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
    expect(kinds(render([user("hi"), answer], { target: { provider: "anthropic", modelId: "other" } }))).toEqual(["text", "text"]);
    expect(kinds(render([user("hi"), answer], { target: null }))).toEqual(["text", "text"]);
    expect(kinds(render([user("hi"), assistant([{ type: "thinking", thinking: "hm" }, text("a")])]))).toEqual(["text", "text"]);
    expect(kinds(render([user("hi"), answer, compaction("a")]))).toEqual(["text", "text"]);
    expect(kinds(render([user("hi", { id: "u" }), answer, { type: "context_edit", targetId: "u", replacement: { content: "ho" } }]))).toEqual(["text", "text"]);
  });

  it("never ends a message, and is no message alone", () => {
    expect(kinds(render([user("hi"), assistant([text("a"), thought]), user("b"), assistant([thought])]))).toEqual(["text", "text", "text"]);
    expect(kinds(render([user("hi"), assistant([call("t")]), assistant([thought, call("t")]), result("t")]))).toEqual(["text", "tool_use", "tool_result"]);
  });
});
