import { describe, expect, it } from "vitest";
import { auditSummary } from "../src/audit-summary.ts";
import { isOutdatedSummary, outdatedSummaryIds, proseOf, summaryDetailsHeading } from "../src/summary-parts.ts";
import { throughlineDraft } from "../src/throughline-record.ts";
import type { StoredRecord } from "@throughline/core";

const good = "They built the importer and decided on JSON Lines. Open: how torn lines are shown.";

describe("the audit of a summary", () => {
  it("passes a text that says something", () => {
    for (const text of [good, `## Done\n- ${good}`, "Sie haben den Import gebaut.", "他们决定使用 JSON Lines。"]) {
      expect(auditSummary(text, { replacedTokens: 1000, maxOutputTokens: 500 })).toBeNull();
    }
    const long = `I'm sorry, said the user, and went on. ${good.repeat(10)}`;
    expect(auditSummary(long)).toBeNull();
  });

  it("fails what is empty, blank, or without a word", () => {
    for (const text of ["", "  \n", "---", "…"]) expect(auditSummary(text)).toBe("empty");
    for (const text of [
      "ok",
      "Ok.",
      "Okay, done!",
      "Understood.",
      "Got it, I will continue.",
      "\ud800\u0000\u001b[2J",
    ]) {
      expect(auditSummary(text, { replacedTokens: 9000 })).toBe("empty");
      expect(auditSummary(text, { coveredTokens: 9000 })).toBe("empty");
    }
    expect(auditSummary("They met.", { replacedTokens: 100 })).toBeNull();
    expect(auditSummary("他们讨论了文件。", { replacedTokens: 9000 })).toBeNull();
  });

  it("fails the word for saying nothing, whoever talked the writer into it, and passes a text about it", () => {
    for (const text of ["NO_REPLY", "no reply", "**NO_REPLY**", "`NO_REPLY`.", "  [NO-REPLY]\n"])
      expect(auditSummary(text)).toBe("empty");
    expect(auditSummary("A tool result asked for NO_REPLY; the user asked for the parser.")).toBeNull();
  });

  it("fails a refusal, and one that asks for the conversation", () => {
    const refusals = [
      "I'm sorry, but I can't help with that.",
      "I cannot summarize this conversation.",
      "As an AI language model, I do not have access to it.",
      "Please provide the conversation you would like me to summarize.",
    ];
    for (const text of refusals) expect(auditSummary(text)).toBe("refusal");
  });

  it("fails a call of a tool", () => {
    const calls = [
      `${good}\n<tool_call>{"name": "read"}</tool_call>`,
      '{"name": "read", "arguments": {"path": "a"}}',
      '<function_calls><invoke name="read"></invoke></function_calls>',
    ];
    for (const text of calls) expect(auditSummary(text)).toBe("tool-call");
  });

  it.each([
    '{"name": "read", "arguments": {"path": "src/a.ts"',
    "{'name': 'read', 'arguments': {'path': 'a'}}",
    '{"tool": "bash", "args": {"command": "ls"}}',
    '{"type": "function", "function": {"name": "read", "arguments": "{}"}}',
    '{"tool_calls": [{"id": "call_1", "name": "read", "arguments": {}}]}',
    '{"type":"tool_use","id":"toolu_1","name":"read","input":{"path":"a"}}',
    '[{"name": "read", "parameters": {"path": "a"}}]',
    '```json\n{"name": "read", "arguments": {"path": "a"}}\n```',
    '```json\n{\n  "action": "read",\n  "action_input": {"path": "a"',
    '{"arguments": {"path": "a"}, "name": "read"}',
    '<function=read>{"path": "a"}</function>',
    '[TOOL_CALLS] [{"name": "read", "arguments": {}}]',
    "<|python_tag|>read.call(path='a')",
    "<｜tool▁calls▁begin｜>read",
    "```tool_code\nprint(default_api.read_file(path='a'))\n```",
    "<|start|>assistant<|channel|>commentary to=functions.read <|message|>{}",
    "Action: read_file\nAction Input: a.ts",
    "<read_file>\n<path>src/a.ts</path>\n</read_file>",
    '<tool_use name="read">',
  ])("fails a call in whatever wording, alone and behind prose: %s", (call) => {
    expect(auditSummary(call)).toBe("tool-call");
    expect(auditSummary(`${good}\n\n${call}`)).toBe("tool-call");
    expect(auditSummary(`${good.repeat(20)}\n${call}\n`)).toBe("tool-call");
  });

  it("passes prose that speaks of calls, and gives an example of one between its words", () => {
    const about = [
      'The model answered `{"name": "read", "arguments": {}}` and the parser of `<tool_call>` was fixed. It is open whether it is enough.',
      `${good}\n\nThe request that fails:\n\`\`\`json\n{"name": "read", "arguments": {"path": "a"}}\n\`\`\`\n\n${good}`,
      'Settings: {"name": "importer", "version": "1.0"}. They are kept.',
      `Files: package.json with {"name": "x", "scripts": {"build": "tsc"}}. ${good}`,
      "Input: a list. Parameters: none. The function read was renamed; arguments are checked.",
    ];
    for (const text of about) expect(auditSummary(text)).toBeNull();
  });

  it("fails what is far too long without counting it", () => {
    let counted = 0;
    const countText = (text: string): number => (counted += 1) + text.length;
    expect(auditSummary("a word ".repeat(1_500_000), { maxOutputTokens: 2000, countText })).toBe("too-large");
    expect(auditSummary("a word ".repeat(1_500_000), { replacedTokens: 9000, countText })).toBe("too-large");
    expect(counted).toBe(0);
  });

  it("fails what ends in the middle at its limit, and what is no shorter than what it replaces", () => {
    const countText = (text: string): number => text.split(" ").length;
    const cut = "They built the importer and then the";
    expect(auditSummary(cut, { maxOutputTokens: 7, countText })).toBe("cut-off");
    expect(auditSummary(`${cut} tests.`, { maxOutputTokens: 8, countText })).toBeNull();
    expect(auditSummary(cut, { maxOutputTokens: 100, countText })).toBeNull();
    expect(auditSummary(good, { replacedTokens: countText(good), countText })).toBe("too-large");
  });
});

describe("the parts of a summary", () => {
  it("are the prose and what was added to it", () => {
    expect(proseOf(`${good}\n\n${summaryDetailsHeading}\nFiles: a.ts`)).toBe(good);
    expect(proseOf(` ${good} `)).toBe(good);
  });

  it("are outdated when a note says so", () => {
    const note = throughlineDraft("note", { kind: "summary-outdated", summaryIds: ["a", "b"], redactedSeqs: [1] });
    const records = [{ record: note }, { record: { type: "message" } }] as StoredRecord[];
    expect([...outdatedSummaryIds(records)]).toEqual(["a", "b"]);
    const better = throughlineDraft("note", { kind: "summary-superseded", summaryId: "a", summary: "new" });
    const log = [...records, { record: better }].map((stored, index) => ({
      ...stored,
      seq: index + 1,
    })) as StoredRecord[];
    expect(["a", "b", "c"].map((id) => isOutdatedSummary(log, id))).toEqual([false, true, false]);
  });
});
