import { describe, expect, it } from "vitest";
import { jsonLines, readUnits, refusals, talk, type ReadSession } from "../read-units.ts";
import { call, line, part, prompt, result, sessionId, text, thought, uuid, type Fields } from "./lines.ts";

function read(...lines: readonly unknown[]): ReadSession {
  const session = readUnits("claude-code", jsonLines(...lines), `/h/.claude/projects/-p/${sessionId}.jsonl`);
  expect(refusals(session)).toEqual([]);
  return session;
}

function usageOf({ records }: ReadSession): Readonly<Record<string, number>> {
  const sum = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  for (const { type, record } of records) {
    const message = record["message"] as { readonly usage?: typeof sum } | undefined;
    const usage = type === "usage" ? (record["usage"] as typeof sum) : message?.usage;
    for (const name of Object.keys(sum) as (keyof typeof sum)[]) sum[name] += usage?.[name] ?? 0;
  }
  return sum;
}

describe("a session of Claude Code", () => {
  it("is read as replies of several lines, with the usage of each once", () => {
    const session = read(
      {
        type: "queue-operation",
        operation: "enqueue",
        timestamp: "2026-05-07T18:00:00.000Z",
        sessionId,
        content: "Hi",
      },
      prompt("u1", null, "Hi"),
      part("a1", "u1", "1", thought, 8),
      part("a2", "a1", "1", text("Let me see."), 8),
      part("a3", "a2", "1", call("t1"), 40),
      result("r1", "a3", "t1"),
      part("a4", "r1", "2", text("Done."), 12),
    );
    expect(talk(session)).toEqual([
      "user: Hi",
      "assistant: (thinking)",
      "assistant: Let me see.",
      "assistant: ?t1",
      "=t1 toolResult: of t1",
      "assistant: Done.",
    ]);
    // Twice the prompt's tokens, and of the first reply as many as its last line says.
    expect(usageOf(session)).toEqual({ input: 6, output: 52, cacheRead: 14, cacheWrite: 10 });
    expect(session.headId).toBe(uuid("a4"));
    const found = session.records.find(({ id }) => id === uuid("r1"))?.record["message"];
    expect(found).toMatchObject({ toolName: "Read", details: { stdout: "all of t1" } });
  });

  it.each([
    ["in the order of the calls", ["r1", "r2"]],
    ["in the order in which they ended", ["r2", "r1"]],
  ])("keeps the results of tools that ran side by side, %s", (_, order) => {
    const results = { r1: result("r1", "a1", "t1"), r2: result("r2", "a2", "t2") };
    const session = read(
      prompt("u1", null, "Look at both."),
      part("a1", "u1", "1", call("t1")),
      part("a2", "a1", "1", call("t2")),
      ...order.map((name) => results[name as "r1" | "r2"]),
      part("a3", order[1] ?? "", "2", text("Both.")),
    );
    const answers = order.map((name) => `=${name.replace("r", "t")} toolResult: of ${name.replace("r", "t")}`);
    const talked = ["user: Look at both.", "assistant: ?t1", "assistant: ?t2", ...answers, "assistant: Both."];
    expect(talk(session)).toEqual(talked);
  });

  it("is one record for each result of a line", () => {
    const content = ["t1", "t2"].map((id) => ({ type: "tool_result", tool_use_id: id, content: id }));
    const session = read(
      prompt("u1", null, "Both."),
      part("a1", "u1", "1", call("t1")),
      part("a2", "a1", "1", call("t2")),
      prompt("r1", "a2", content),
      part("a3", "r1", "2", text("Yes.")),
    );
    expect(talk(session).slice(3)).toEqual(["=t1 toolResult: t1", "=t2 toolResult: t2", "assistant: Yes."]);
    const [, second] = session.records.filter(({ id }) => id.startsWith(uuid("r1")));
    expect(second).toMatchObject({ id: `${uuid("r1")}~d1`, record: { derivedFrom: { id: uuid("r1"), index: 1 } } });
  });

  it("follows the way to its newest line, past rewinds, sub-agents and team mates", () => {
    const session = read(
      prompt("u1", null, "First."),
      part("a1", "u1", "1", text("One.")),
      prompt("u2", "a1", "Wrong way."),
      part("a2", "u2", "2", text("Astray.")),
      prompt("u3", "a1", "Right way."),
      part("a3", "u3", "3", call("t1")),
      prompt("s1", null, "Search.", { isSidechain: true, agentId: "ab" }),
      { ...part("s2", "s1", "4", text("Found.")), isSidechain: true },
      result("r1", "a3", "t1"),
      part("a4", "r1", "5", text("There.")),
      prompt("m1", "a4", "From a team mate.", { teamName: "blue" }),
    );
    expect(talk(session)).toEqual([
      "user: First.",
      "assistant: One.",
      "user: Right way.",
      "assistant: ?t1",
      "=t1 toolResult: of t1",
      "assistant: There.",
    ]);
    expect(session.headId).toBe(uuid("a4"));
  });

  it("begins behind a compaction with its summary, and what came before stays in the log", () => {
    const boundary = { trigger: "auto", preTokens: 180000 };
    const session = read(
      prompt("u1", null, "Long ago."),
      part("a1", "u1", "1", text("Indeed.")),
      line("b1", null, {
        type: "system",
        subtype: "compact_boundary",
        logicalParentUuid: uuid("a1"),
        compactMetadata: boundary,
      }),
      prompt("s1", "b1", "They spoke.", { isCompactSummary: true, isVisibleInTranscriptOnly: true }),
      prompt("u2", "s1", "And now?"),
      part("a2", "u2", "2", text("Now.")),
    );
    expect(talk(session)).toEqual(["compactionSummary: They spoke.", "user: And now?", "assistant: Now."]);
    const [compaction] = session.records.filter(({ type }) => type === "compaction");
    expect(compaction?.record).toMatchObject({ tokensBefore: 180000, firstKeptEntryId: uuid("b1") });
    expect(session.records.find(({ id }) => id === uuid("b1"))?.parentId).toBe(uuid("a1"));
    expect(session.findings).toEqual([]);
  });

  it("keeps the messages that a compaction kept", () => {
    const preservedMessages = { anchorUuid: uuid("s1"), uuids: [uuid("u2"), uuid("a2")] };
    const session = read(
      prompt("u1", null, "Long ago."),
      part("a1", "u1", "1", text("Indeed.")),
      prompt("u2", "a1", "Keep this."),
      part("a2", "u2", "2", text("Kept.")),
      line("b1", null, {
        type: "system",
        subtype: "compact_boundary",
        logicalParentUuid: uuid("a2"),
        compactMetadata: { trigger: "manual", preTokens: 9, preservedMessages },
      }),
      prompt("s1", "b1", "They spoke.", { isCompactSummary: true, isVisibleInTranscriptOnly: true }),
      prompt("u3", "s1", "On."),
    );
    expect(talk(session)).toEqual([
      "compactionSummary: They spoke.",
      "user: Keep this.",
      "assistant: Kept.",
      "user: On.",
    ]);
  });

  it.each([
    ["its newest message", "a2", ["user: Keep this.", "assistant: Kept."]],
    ["an earlier one", "u2", ["user: Keep this."]],
  ])("continues from what a compaction kept, from %s", (_, parent, kept) => {
    const segment = { headUuid: uuid("u2"), anchorUuid: uuid("s1"), tailUuid: uuid("a2") };
    const session = read(
      prompt("u1", null, "Long ago."),
      part("a1", "u1", "1", text("Indeed.")),
      prompt("u2", "a1", "Keep this."),
      part("a2", "u2", "2", text("Kept.")),
      line("b1", null, {
        type: "system",
        subtype: "compact_boundary",
        logicalParentUuid: uuid("a2"),
        compactMetadata: { trigger: "auto", preTokens: 9, preservedSegment: segment },
      }),
      prompt("s1", "b1", "They spoke.", { isCompactSummary: true }),
      prompt("u3", parent, "On."),
    );
    expect(talk(session)).toEqual(["compactionSummary: They spoke.", ...kept, "user: On."]);
    expect(session.findings).toEqual([]);
  });

  it("keeps the whole of a reply of which a compaction kept a part, with results between its calls", () => {
    const preservedMessages = { anchorUuid: uuid("s1"), uuids: [uuid("a3"), uuid("r3")] };
    const session = read(
      prompt("u1", null, "Do it."),
      part("a1", "u1", "1", thought),
      part("a2", "a1", "1", call("t1")),
      result("r2", "a2", "t1"),
      part("a3", "r2", "1", call("t2")),
      result("r3", "a3", "t2"),
      line("b1", null, {
        type: "system",
        subtype: "compact_boundary",
        logicalParentUuid: uuid("r3"),
        compactMetadata: { trigger: "auto", preTokens: 9, preservedMessages },
      }),
      prompt("s1", "b1", "They spoke.", { isCompactSummary: true }),
      prompt("u2", "s1", "On."),
    );
    expect(talk(session)).toEqual([
      "compactionSummary: They spoke.",
      "assistant: (thinking)",
      "assistant: ?t1",
      "=t1 toolResult: of t1",
      "assistant: ?t2",
      "=t2 toolResult: of t2",
      "user: On.",
    ]);
  });

  it("continues an earlier compaction behind what that one kept, and shows again what a person goes back to", () => {
    const boundary = (name: string, leaf: string, summary: string, kept: readonly string[]): Fields =>
      line(name, null, {
        type: "system",
        subtype: "compact_boundary",
        logicalParentUuid: uuid(leaf),
        compactMetadata: { preTokens: 9, preservedMessages: { anchorUuid: uuid(summary), uuids: kept.map(uuid) } },
      });
    const lines = [
      prompt("u1", null, "First."),
      part("a1", "u1", "1", text("One.")),
      prompt("u2", "a1", "Second."),
      part("a2", "u2", "2", text("Two.")),
      prompt("u3", "a2", "Third."),
      boundary("b1", "u3", "s1", ["u2", "u3"]),
      prompt("s1", "b1", "Earlier summary.", { isCompactSummary: true }),
      prompt("u4", "a1", "Another way."),
      boundary("b2", "u4", "s2", ["u1", "a1"]),
      prompt("s2", "b2", "Later summary.", { isCompactSummary: true }),
    ];
    const behind = (parent: string): readonly string[] => talk(read(...lines, prompt("u5", parent, "On.")));
    const earlier = ["compactionSummary: Earlier summary.", "user: Second."];
    expect(behind("u3")).toEqual([...earlier, "user: Third.", "user: On."]);
    expect(behind("a2")).toEqual([...earlier, "assistant: Two.", "user: On."]);
    expect(behind("a1")).toEqual(["compactionSummary: Later summary.", "user: First.", "assistant: One.", "user: On."]);
  });

  it("leaves out what a compaction took from between the messages that it kept", () => {
    const preservedMessages = { anchorUuid: uuid("s1"), uuids: [uuid("u1"), uuid("a2")] };
    const session = read(
      prompt("u1", null, "First."),
      part("a1", "u1", "1", text("Taken out.")),
      prompt("u2", "a1", "Taken out too."),
      part("a2", "u2", "2", text("Kept.")),
      line("b1", null, {
        type: "system",
        subtype: "compact_boundary",
        logicalParentUuid: uuid("a2"),
        compactMetadata: { trigger: "auto", preTokens: 9, preservedMessages },
      }),
      { ...prompt("x1", null, "Search.", { isSidechain: true, agentId: "ab" }) },
      prompt("s1", "b1", "They spoke.", { isCompactSummary: true }),
      prompt("u3", "s1", "On."),
    );
    expect(talk(session)).toEqual(["compactionSummary: They spoke.", "user: First.", "assistant: Kept.", "user: On."]);
  });

  it("begins empty behind a boundary without a summary, as the program does, and says so", () => {
    const session = read(
      prompt("u1", null, "Before."),
      line("b1", null, { type: "system", subtype: "compact_boundary", logicalParentUuid: uuid("u1") }),
      prompt("u2", "b1", "After."),
    );
    expect(talk(session)).toEqual(["user: After."]);
    expect(session.findings.map(({ code }) => code)).toEqual(["COMPACTION_DANGLING"]);
  });

  it("tells what a person typed from what the program says and from what only people see", () => {
    const session = read(
      prompt("u1", null, "Caveat: made by commands.", { isMeta: true }),
      prompt("u2", "u1", "<command-name>/cost</command-name>"),
      prompt("u3", "u2", "Only on screen.", { isVisibleInTranscriptOnly: true }),
      line("n1", "u3", { type: "system", subtype: "turn_duration", durationMs: 5 }),
      line("n2", "n1", { type: "attachment", attachment: { type: "queued_command", prompt: "And this." } }),
      line("n3", "n2", { type: "progress", data: { type: "hook" } }),
      part("a1", "n2", "1", text("Yes.")),
      line("e1", "a1", {
        type: "assistant",
        isApiErrorMessage: true,
        message: { id: "x", role: "assistant", model: "<synthetic>", content: [text("API Error: 529")] },
      }),
    );
    expect(talk(session)).toEqual([
      "custom: Caveat: made by commands.",
      "user: <command-name>/cost</command-name>",
      "user: And this.",
      "assistant: Yes.",
      "assistant: API Error: 529",
    ]);
    expect(session.context.messages.at(-1)).toMatchObject({ stopReason: "error", model: null });
    expect(session.context.model).toEqual({ provider: "anthropic", modelId: "claude-opus-4-7" });
  });

  it("has the names that its lines state, each the last of its kind, and none of another session's", () => {
    const session = read(
      { type: "summary", summary: "Another session", leafUuid: uuid("elsewhere") },
      prompt("u1", null, "Hi"),
      { type: "ai-title", aiTitle: "Greeting", sessionId },
      { type: "ai-title", aiTitle: "A greeting", sessionId },
      { type: "agent-name", agentName: "helper", sessionId },
      { type: "custom-title", customTitle: "mine", sessionId },
    );
    const names = { title: "A greeting", titleBy: "import", label: "mine" };
    expect(session.reader.entry).toEqual({ cwd: "/home/u/project", ...names });
    expect(session.reader.sessionId).toBe(sessionId);
  });

  it("keeps every line of a type that nobody knows, beside the conversation, and goes on where it hangs", () => {
    const session = read(
      prompt("u1", null, "Hi"),
      line("x1", "u1", { type: "novelty", deep: { of: [1] } }),
      part("a1", "x1", "1", text("Hello.")),
      { type: "marks", marks: [1, 2] },
      { type: 7 },
    );
    expect(talk(session)).toEqual(["user: Hi", "assistant: Hello."]);
    const kept = session.records.filter(({ side }) => side).map(({ record }) => record);
    const types = ["claude-code.novelty", "claude-code.marks", "claude-code.unknown"];
    expect(kept.map(({ customType }) => customType)).toEqual(types);
    expect(kept[1]?.["data"]).toEqual({ marks: [1, 2] });
    expect(session.records).toHaveLength(5);
  });

  it("stays whole where a line is broken, written twice, its own parent, or has one that is elsewhere", () => {
    const session = read(
      prompt("u1", "elsewhere", "Hi"),
      '{"broken',
      part("a1", "lost", "1", text("Hello.")),
      prompt("u2", "u2", "Again."),
      part("a2", "u2", "2", text("Twice.")),
      part("a2", "u2", "2", text("Twice.")),
      prompt("u3", "a2", "End."),
    );
    expect(talk(session)).toEqual(["user: Hi", "assistant: Hello.", "user: Again.", "assistant: Twice.", "user: End."]);
    expect(session.findings.map(({ code }) => code)).toEqual(["LINE_MALFORMED", "ORPHAN_PARENT", "ORPHAN_PARENT"]);
  });

  it("of a sub-agent is a session by itself, and names the one that spawned it", () => {
    const lines = jsonLines(prompt("s1", null, "Search.", { isSidechain: true, agentId: "ab12" }), {
      ...part("s2", "s1", "4", text("Found.")),
      isSidechain: true,
      agentId: "ab12",
    });
    const placed = readUnits("claude-code", lines, `/h/.claude/projects/-p/${sessionId}/subagents/w/agent-ab12.jsonl`);
    const beside = readUnits("claude-code", lines, "/h/.claude/projects/-p/agent-ab12.jsonl");
    for (const session of [placed, beside]) {
      expect(talk(session)).toEqual(["user: Search.", "assistant: Found."]);
      expect(session.reader.spawnedBy).toBe(sessionId);
      expect(session.reader.sessionId).toBe(`${sessionId}.agent-ab12`);
    }
  });
});
