import { foreignFormats } from "@throughline/foreign-formats";
import { describe, expect, it } from "vitest";
import { readUnits, refusals, talk } from "../read-units.ts";

type Fields = Readonly<Record<string, unknown>>;

const path = "/u/globalStorage/saoudrizwan.claude-dev/tasks/1716893/api_conversation_history.json";
const text = (words: string): Fields => ({ type: "text", text: words });
const ask = (words: string, fields: Fields = {}): Fields => ({
  role: "user",
  content: [text(words)],
  ts: 1_790_000_000_000,
  ...fields,
});
const say = (words: string, fields: Fields = {}): Fields => ({
  role: "assistant",
  content: [text(words)],
  ts: 1_790_000_001_000,
  ...fields,
});

const cline = [
  ask("<task>\nRead a.txt\n</task>"),
  {
    role: "assistant",
    content: [
      { type: "thinking", thinking: "Hm.", signature: "c2ln" },
      text("I look."),
      { type: "tool_use", id: "toolu_1", name: "read_file", input: { path: "a.txt" } },
    ],
    modelInfo: { modelId: "claude-opus-4-7", providerId: "anthropic", mode: "act" },
    ts: 1_790_000_001_000,
  },
  {
    role: "user",
    content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "hello", is_error: true }, text("env")],
  },
  say("<read_file><path>b.txt</path></read_file>"),
];

const roo = {
  version: 2,
  messages: [
    ask("Read a.txt"),
    {
      role: "assistant",
      content: [
        { type: "reasoning", text: "Hm.", providerOptions: { anthropic: { signature: "c2ln" } } },
        { type: "tool-call", toolCallId: "c1", toolName: "read_file", input: { path: "a.txt" } },
        { type: "tool-call", toolCallId: "c2", toolName: "read_file", input: {} },
      ],
      ts: 1_790_000_002_000,
    },
    {
      role: "tool",
      content: [
        { type: "tool-result", toolCallId: "c1", toolName: "read_file", output: { type: "text", value: "hello" } },
        {
          type: "tool-result",
          toolCallId: "c2",
          toolName: "read_file",
          output: { type: "text", value: "[ERROR] No." },
        },
      ],
      ts: 1_790_000_003_000,
    },
    { type: "reasoning", encrypted_content: "ZW5j", ts: 1_790_000_003_500 },
    say("Done."),
  ],
};

describe("a task of Cline or Roo", () => {
  it("is read by what the model was sent, and named by its folder", () => {
    const session = readUnits("cline", JSON.stringify(cline), path);
    expect(talk(session)).toEqual([
      "user: <task>\nRead a.txt\n</task>",
      "assistant: (thinking) I look. ?toolu_1",
      "=toolu_1 toolResult: hello",
      "user: env",
      "assistant: <read_file><path>b.txt</path></read_file>",
    ]);
    expect(session.context.messages[1]).toMatchObject({ model: "claude-opus-4-7", provider: "anthropic" });
    expect(session.context.messages[2]).toMatchObject({ isError: true, toolName: "read_file" });
    expect([session.reader.sessionId, session.findings, refusals(session)]).toEqual(["1716893", [], []]);
    expect(session.records[1]?.tsMs).toBe(1_790_000_000_000);
  });

  it("has the messages of the AI SDK in Roo's newer version", () => {
    const session = readUnits("cline", JSON.stringify(roo, null, 2), path);
    expect(talk(session)).toEqual([
      "user: Read a.txt",
      "assistant: (thinking) ?c1 ?c2",
      "=c1 toolResult: hello",
      "=c2 toolResult: [ERROR] No.",
      "assistant: Done.",
    ]);
    expect(session.context.messages[3]).toMatchObject({ isError: true });
    expect([session.findings, refusals(session)]).toEqual([[], []]);
  });

  it("leaves out what a summary or a truncation hides, and nothing whose summary is gone", () => {
    const condensed = [
      ask("First"),
      say("One", { condenseParent: "x" }),
      ask("Two", { condenseParent: "x" }),
      say("Gone", { condenseParent: "deleted" }),
      say("In short.", { isSummary: true, condenseId: "x" }),
      ask("Three"),
      say("Late", { condenseParent: "x" }),
    ];
    expect(talk(readUnits("cline", JSON.stringify(condensed), path))).toEqual([
      "user: First",
      "assistant: Gone",
      "assistant: In short.",
      "user: Three",
    ]);
    const truncated = [
      ask("First"),
      say("One", { truncationParent: "t" }),
      ask("[cut]", { isTruncationMarker: true, truncationId: "t" }),
      say("Two"),
      ask("All", { isSummary: true, condenseId: "y" }),
    ];
    const read = readUnits("cline", JSON.stringify(truncated), path);
    // The summary names no message that it replaces.
    expect(talk(read)).toEqual(["user: First", "user: [cut]", "assistant: Two", "user: All"]);
    expect(refusals(read)).toEqual([]);
    expect(read.records.filter(({ record }) => JSON.stringify(record).includes("One"))).toHaveLength(1);
  });

  it("is known by the name of its file or the times of its messages, and no provider's format claims it", () => {
    const plain = JSON.stringify([{ role: "user", content: "Hi" }]);
    const verdicts = (file: string, given: string): readonly string[] =>
      [...foreignFormats.values()].flatMap(({ name, detect }) =>
        detect({ path: file, head: Buffer.from(given), isWhole: true }) === null ? [] : [name],
      );
    expect(verdicts(path, plain)).toEqual(["cline"]);
    expect(verdicts("C:\\tasks\\1\\api_conversation_history.json", JSON.stringify(cline))).toEqual(["cline"]);
    expect(verdicts("/p/copy.json", JSON.stringify(roo))).toEqual(["cline"]);
    expect(verdicts("/p/copy.json", plain)).not.toContain("cline");
    expect(verdicts(path, '[{"role":"user","content":5}]')).toEqual([]);
    expect(verdicts(path, "[]")).toEqual([]);
  });

  it("keeps what nobody knows", () => {
    const odd = [
      { novelty: 1 },
      ask("Hi"),
      { role: "narrator", content: "Later." },
      { role: "user", content: 5 },
      "text",
      null,
    ];
    const session = readUnits("cline", JSON.stringify(odd), path);
    expect(talk(session)).toEqual(["user: Hi"]);
    expect(session.findings.map(({ code, line }) => [code, line])).toEqual([
      ["RECORD_INVALID", 4],
      ["RECORD_INVALID", 5],
      ["LINE_MALFORMED", 6],
      ["LINE_MALFORMED", 7],
    ]);
    expect(session.units).toBe(8);
  });
});

describe("a task whose results are texts", () => {
  const call = (id: string, name: string): object => ({ type: "tool_use", id, name, input: {} });
  const text = (words: string): object => ({ type: "text", text: words });

  it("has each with the first open call of its tool, and the rest as what was said", () => {
    const session = readUnits(
      "cline",
      JSON.stringify([
        { role: "user", content: "Look." },
        { role: "assistant", content: [call("t1", "read_file"), call("t2", "read_file"), call("t3", "list_files")] },
        {
          role: "user",
          content: [
            text("[read_file for 'a.txt'] Result:\nA garden."),
            text("[list_files for '.'] Result:"),
            text("a.txt"),
            text("[read_file for 'b.txt'] Result:"),
            text("[ERROR] None."),
            text("<environment_details>\nnone\n</environment_details>"),
          ],
        },
        { role: "assistant", content: [call("t4", "attempt_completion")] },
        { role: "user", content: [text("[attempt_completion] Result:"), text("<feedback>\nAnd?\n</feedback>")] },
        { role: "user", content: [text("[read_file] Result: of nothing")] },
      ]),
      "/p/tasks/1/api_conversation_history.json",
    );
    expect(talk(session)).toEqual([
      "user: Look.",
      "assistant: ?t1 ?t2 ?t3",
      "=t1 toolResult: A garden.",
      "=t3 toolResult: a.txt",
      "=t2 toolResult: [ERROR] None.",
      "user: <environment_details>\nnone\n</environment_details>",
      "assistant: ?t4",
      "=t4 toolResult: ",
      "user: <feedback>\nAnd?\n</feedback>",
      "user: [read_file] Result: of nothing",
    ]);
  });
});
