import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { activityReport } from "../src/activity/activity-report.ts";
import { cellWidth } from "../src/cells.ts";
import { objects, runHere, seed, temporaryDirectory, user } from "./harness.ts";

const directory = temporaryDirectory();
afterAll(() => directory.remove());

const dayMs = 86_400_000;
const nowMs = Date.now();
const at = (days: number): { readonly timestamp: string } => ({
  timestamp: new Date(nowMs - days * dayMs).toISOString(),
});
const calls = (count: number): object => ({
  role: "assistant",
  content: Array.from({ length: count }, (_, index) => ({
    type: "toolCall",
    id: `c${index}`,
    name: "read",
    arguments: {},
  })),
  provider: "anthropic",
  model: "claude-opus-4-5",
  usage: { input: 1000, output: 100, cacheRead: 0, cacheWrite: 0 },
  stopReason: "toolUse",
});
const result = (id: string, isError: boolean): object => ({
  role: "toolResult",
  toolCallId: id,
  toolName: "read",
  content: "x",
  isError,
});

beforeAll(async () => {
  const message = (body: object, days: number): { type: string; message: object } => ({
    type: "message",
    ...at(days),
    message: body,
  });
  await seed(directory.path, [
    {
      key: "agent:main:dear",
      entry: { title: "Plan the harbour", cwd: `${directory.path}/app`, importedFrom: { format: "codex" } },
      drafts: [
        message({ role: "user", content: "go" }, 2),
        message(calls(2), 2),
        message(result("c0", true), 2),
        message(result("c1", false), 0),
      ],
    },
    { key: "agent:main:talk", drafts: Array.from({ length: 6 }, (_, index) => user(`word ${index}`)) },
    {
      key: "agent:work:old",
      drafts: [message({ role: "bashExecution", command: "false", output: "", exitCode: 1 }, 40)],
    },
  ]);
});

describe("stats --activity", () => {
  it("counts messages, tools, failures and cost by program and folder, and by day", async () => {
    const { stdout, code } = await runHere(directory.path, ["stats", "--activity", "--json"]);
    expect(code).toBe(0);
    const [report] = objects(stdout);
    expect(report).toMatchObject({
      kind: "activity",
      sessions: 3,
      messages: 11,
      toolCalls: 3,
      failedTools: 2,
      unpricedCalls: 0,
      longest: [{ key: "agent:main:talk", messages: 6 }, { key: "agent:main:dear" }, { key: "agent:work:old" }],
      mostExpensive: [{ key: "agent:main:dear", name: "Plan the harbour", program: "codex" }],
    });
    expect(report?.["costUsd"]).toBeCloseTo((1000 * 5 + 100 * 25) / 1e6, 12);
    expect(report?.["places"]).toEqual([
      expect.objectContaining({ program: "own", folder: null, sessions: 2, messages: 7, toolCalls: 1, failedTools: 1 }),
      expect.objectContaining({
        program: "codex",
        folder: `${directory.path}/app`,
        sessions: 1,
        messages: 4,
        toolCalls: 2,
      }),
    ]);
    const days = report?.["days"] as readonly { readonly day: string; readonly messages: number }[];
    expect(days).toHaveLength(14);
    // Messages without a time of their own count when they were stored.
    expect(days.map(({ messages }) => messages)).toEqual([...Array.from({ length: 11 }, () => 0), 3, 0, 7]);
  });

  it("is limited to an agent, and continues with what came since", async () => {
    const one = objects((await runHere(directory.path, ["stats", "--activity", "--agent", "work", "--json"])).stdout);
    expect(one[0]).toMatchObject({ sessions: 1, messages: 1, failedTools: 1, costUsd: 0 });
    const draft = JSON.stringify({ type: "message", message: result("c1", true) });
    await runHere(directory.path, ["append", "agent:work:old"], { stdin: `${draft}\n` });
    const more = objects((await runHere(directory.path, ["stats", "--activity", "--agent", "work", "--json"])).stdout);
    expect(more[0]).toMatchObject({ messages: 2, toolCalls: 1, failedTools: 2 });
  });

  it("fits a terminal of 80 columns, and plain stats stay as they were", async () => {
    const { stdout } = await runHere(directory.path, ["stats", "--activity"], { isTerminal: true });
    // oxlint-disable-next-line no-control-regex -- styles are taken out to measure the rows
    const rows = stdout.replaceAll(/\u001b\[[\d;]*m/g, "").split("\n");
    expect(rows.every((row) => cellWidth(row) <= 80)).toBe(true);
    expect(rows).toEqual(expect.arrayContaining([expect.stringMatching(/^"word 0" +own +6 +\$0\.00$/)]));
    expect(rows.filter((row) => /^\d{4}-\d\d-\d\d/.test(row))).toHaveLength(14);
    const [plain] = objects((await runHere(directory.path, ["stats", "--json"])).stdout);
    expect(plain).not.toHaveProperty("places");
    expect(plain).toMatchObject({ kind: "stats", sessions: 3 });
  });

  it("has fourteen days in every zone, also when the clock changes", () => {
    for (const day of ["2026-03-29T00:30:00Z", "2026-10-25T23:30:00Z", "2026-01-01T00:00:00Z"]) {
      const { days } = activityReport([], Date.parse(day));
      expect(new Set(days.map((each) => each.day)).size).toBe(14);
    }
  });
});
