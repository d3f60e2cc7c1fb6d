import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { corpusFiles } from "../corpus-files.ts";
import { jsonLines, readUnits, refusals, talk } from "../read-units.ts";

type Fields = Readonly<Record<string, unknown>>;

let count = 0;
function event(type: string, data: Fields, more: Fields = {}): Fields {
  count += 1;
  return { type, data, id: `e${count}`, parentId: `e${count - 1}`, timestamp: "2026-06-30T10:00:00.000Z", ...more };
}

const start = event("session.start", { sessionId: "s1", copilotVersion: "1.0.67", context: { cwd: "/home/u" } });
const call = { toolCallId: "c1", name: "view", arguments: { path: "a.txt" }, type: "function" };

describe("a session of GitHub Copilot CLI", () => {
  it("is read by its events, and what the model was sent counts", () => {
    const session = readUnits(
      "copilot-cli",
      jsonLines(
        start,
        event("system.message", { role: "system", content: "Be brief." }),
        event("user.message", { content: "Read a.", transformedContent: "<now>Read a." }),
        event("assistant.turn_start", { turnId: "0" }),
        event("assistant.message", {
          messageId: "m1",
          model: "claude-haiku-4.5",
          content: "I look.",
          reasoningText: "Hm.",
          reasoningOpaque: "c2ln",
          toolRequests: [call],
        }),
        event("tool.execution_start", { toolCallId: "c1", toolName: "view", arguments: { path: "a.txt" } }),
        event("tool.execution_complete", { toolCallId: "c1", success: true, result: { content: "hello" } }),
        event("tool.execution_start", { toolCallId: "c2", toolName: "bash", arguments: { command: "x" } }),
        event("tool.execution_complete", { toolCallId: "c2", success: false, error: { message: "No." } }),
        event("assistant.message", { messageId: "x", content: "inner" }, { agentId: "c2" }),
        event("tool.execution_complete", { toolCallId: "c9", success: true, result: { content: "?" } }),
        event("assistant.message", { messageId: "m2", content: "Done." }),
        event("session.shutdown", {
          modelMetrics: {
            m: { usage: { inputTokens: 30, cacheReadTokens: 20, cacheWriteTokens: 4, outputTokens: 5 } },
          },
        }),
      ),
    );
    expect(talk(session)).toEqual([
      "system: Be brief.",
      "user: <now>Read a.",
      "assistant: (thinking) I look. ?c1",
      "=c1 toolResult: hello",
      "assistant: ?c2",
      "=c2 toolResult: No.",
      "assistant: Done.",
    ]);
    expect([session.reader.sessionId, session.reader.entry]).toEqual(["s1", { cwd: "/home/u" }]);
    expect(session.records.find(({ type }) => type === "usage")?.record).toMatchObject({
      model: "m",
      usage: { input: 6, cacheRead: 20, cacheWrite: 4, output: 5 },
    });
    expect(refusals(session)).toEqual([]);
    expect(session.findings).toEqual([]);
  });

  it("keeps events that nobody knows, and those that cannot be read", () => {
    const session = readUnits(
      "copilot-cli",
      jsonLines(
        start,
        event("novelty.event", { of: [1] }),
        event("user.message", { content: 5 }),
        { type: "__proto__", data: null },
        "{broken",
        event("assistant.message", { toolRequests: [null, { toolCallId: 5 }], content: null }),
        event("tool.execution_start", {}),
        event("session.shutdown", { modelMetrics: { m: { usage: "none" } } }),
        event("user.message", { content: "Hi" }),
      ),
    );
    expect(talk(session)).toEqual(["user: Hi"]);
    expect(session.units).toBe(9);
    expect(session.findings.map(({ code, line }) => [code, line])).toEqual([
      ["RECORD_INVALID", 3],
      ["LINE_MALFORMED", 5],
    ]);
  });

  it.skipIf(corpusFiles("copilot-cli", ".jsonl").length === 0)(
    "of the corpus has every message of its own, and its tokens",
    () => {
      for (const file of corpusFiles("copilot-cli", ".jsonl")) {
        const text = readFileSync(file, "utf8");
        const events = text
          .trimEnd()
          .split("\n")
          .map((line) => JSON.parse(line) as Fields);
        const session = readUnits("copilot-cli", text, file);
        const own = events.filter(({ agentId }) => agentId === undefined);
        const results = session.context.messages.filter(({ role }) => role === "toolResult");
        expect(results).toHaveLength(own.filter(({ type }) => type === "tool.execution_complete").length);
        expect(refusals(session)).toEqual([]);
        const shutdown = events.find(({ type }) => type === "session.shutdown")?.["data"] as Fields | undefined;
        const metrics = Object.values(
          (shutdown?.["modelMetrics"] ?? {}) as Record<
            string,
            { usage: { inputTokens: number; outputTokens: number } }
          >,
        );
        const counted = session.records.flatMap(({ record }) =>
          record.type === "usage" ? [record["usage"] as { totalTokens: number }] : [],
        );
        const sum = (values: readonly number[]): number => values.reduce((all, one) => all + one, 0);
        expect(sum(counted.map(({ totalTokens }) => totalTokens))).toBe(
          sum(metrics.map(({ usage }) => usage.inputTokens + usage.outputTokens)),
        );
      }
    },
  );

  it("counts a run once, however often it ends, and each run by itself", () => {
    const shutdown = (sessionStartTime: unknown, inputTokens: number, outputTokens: number): Fields =>
      event("session.shutdown", { sessionStartTime, modelMetrics: { m: { usage: { inputTokens, outputTokens } } } });
    const totals = (...events: readonly Fields[]): readonly unknown[] =>
      readUnits("copilot-cli", jsonLines(start, ...events)).records.flatMap(({ record }) =>
        record.type === "usage" ? [(record["usage"] as { readonly totalTokens: number }).totalTokens] : [],
      );
    expect(totals(shutdown(1, 30, 5), shutdown(1, 50, 9), shutdown(1, 50, 9))).toEqual([35, 24]);
    expect(totals(shutdown(1, 30, 5), shutdown(2, 50, 9))).toEqual([35, 59]);
    // Fewer than before: the program counted from nothing again.
    expect(totals(shutdown(1, 30, 5), shutdown(1, 10, 9))).toEqual([35, 19]);
    expect(totals(shutdown(undefined, 30, 5), shutdown(undefined, 30, 5))).toEqual([35, 35]);
  });
});
