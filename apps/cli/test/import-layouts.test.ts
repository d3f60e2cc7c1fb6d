import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { objects, runHere, temporaryDirectory } from "./harness.ts";

let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

function write(files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    const path = join(directory.path, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
}

const lines = (...records: readonly object[]): string =>
  records.map((record) => `${JSON.stringify(record)}\n`).join("");

async function json(...args: readonly string[]): Promise<Record<string, unknown>[]> {
  return objects((await runHere(directory.path, [...args, "--json", "--quiet"])).stdout);
}

const talk = lines(
  { type: "user", content: "My name is Ada.", ts: 1_735_689_600.5 },
  { type: "assistant", content: [{ type: "text", text: "I will read it." }], ts: 1_735_689_601 },
  { type: "tool_use", tool_use_id: "toolu_1", name: "read_file", input: { path: "a.txt" }, ts: 1_735_689_602 },
  { type: "tool_result", tool_use_id: "toolu_1", content: "alpha", ts: 1_735_689_603 },
  { type: "assistant", content: [{ type: "text", text: "It says alpha." }], ts: 1_735_689_604 },
);

describe("sessions of the tutorials", () => {
  it("with an index above are imported by their ids and labels, and the conversation goes on [C05, LAY-01]", async () => {
    const index = {
      abc123: { label: "my-project", created_at: 1_735_689_600.5, last_active: 1_735_689_605, message_count: 2 },
    };
    write({
      "workspace/.sessions/agents/luna/sessions.json": JSON.stringify(index),
      "workspace/.sessions/agents/luna/sessions/abc123.jsonl": talk,
    });
    const [imported] = await json("import", "workspace");
    expect(imported?.["sources"]).toMatchObject([
      {
        format: "claw0",
        key: "agent:luna:import:direct:abc123",
        sessionId: "abc123",
        state: "imported",
        records: 5,
        lost: [],
      },
    ]);
    expect(await json("sessions", "--agent", "luna")).toMatchObject([
      { label: "my-project", messageCount: 5 },
      { kind: "end" },
    ]);
    const chat = [
      "chat",
      "--agent",
      "luna",
      "--model",
      "offline",
      "--key",
      "agent:luna:import:direct:abc123",
      "--once",
    ];
    expect(await json(...chat, "what is my name")).toMatchObject([
      { key: expect.stringMatching(/^agent:luna:cli:direct:/), text: expect.stringContaining("Your name is Ada") },
    ]);
    expect((await json("import", "workspace"))[0]).toMatchObject({ totals: { unchanged: 1, imported: 0 } });
  });

  it("with transcripts in a folder of their own are imported by their keys [C05, LAY-02, LAY-03]", async () => {
    const meta = {
      session_key: "main:cli:user",
      session_id: "abc123",
      created_at: "2025-01-01T00:00:00+00:00",
      updated_at: "2025-01-01T00:00:05+00:00",
      message_count: 2,
      transcript_file: "main_cli_user_abc123.jsonl",
    };
    const transcript = lines(
      { type: "session", id: "abc123", key: "main:cli:user", created: "2025-01-01T00:00:00Z" },
      { type: "user", content: "hello", ts: "2025-01-01T00:00:01Z" },
      { type: "assistant", content: "Hi there!", ts: "2025-01-01T00:00:02Z" },
      {
        type: "tool_use",
        name: "read_file",
        tool_use_id: "tu_001",
        input: { path: "config.json" },
        ts: "2025-01-01T00:00:03Z",
      },
      { type: "tool_result", tool_use_id: "tu_001", output: '{"key":"value"}', ts: "2025-01-01T00:00:04Z" },
    );
    write({
      "workspace/.sessions/sessions.json": JSON.stringify({ "main:cli:user": meta }),
      "workspace/.sessions/transcripts/main_cli_user_abc123.jsonl": transcript,
    });
    const [imported] = await json("import", "workspace", "--from", "claw0");
    expect(imported?.["sources"]).toMatchObject([
      { format: "claw0", sessionId: "abc123", state: "imported", lost: [] },
    ]);
    const [{ key }] = (imported?.["sources"] ?? []) as [{ key: string }];
    const [context] = await json("context", key, "--provider", "anthropic");
    expect(JSON.stringify(context?.["messages"])).toMatch(/hello.*Hi there!.*tool_use.*tu_001.*tool_result/);
  });
});
