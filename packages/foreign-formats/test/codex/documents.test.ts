import { detectForeignFormat, foreignFormats } from "@throughline/foreign-formats";
import { describe, expect, it } from "vitest";
import { readUnits, refusals, talk, type ReadSession } from "../read-units.ts";
import { type Fields, sessionId } from "./lines.ts";

const path = `/h/.codex/sessions/rollout-2025-05-17-${sessionId}.json`;
const output = JSON.stringify({ output: "a.txt\n", metadata: { exit_code: 0, duration_seconds: 0.1 } });

/** What the versions in TypeScript wrote: items of the Responses API, and their own notices among them. */
const items: readonly Fields[] = [
  { type: "message", role: "user", content: [{ type: "input_text", text: "Run ls" }] },
  { id: "rs_1", type: "reasoning", summary: [{ type: "summary_text", text: "Hm." }], duration_ms: 12 },
  {
    id: "fc_1",
    type: "function_call",
    status: "completed",
    name: "shell",
    arguments: '{"command":["ls"]}',
    call_id: "c1",
  },
  { type: "function_call_output", call_id: "c1", output },
  { id: "error-1", type: "message", role: "system", content: [{ type: "input_text", text: "⚠️ Rate limit reached" }] },
  {
    id: "msg_1",
    type: "message",
    status: "completed",
    role: "assistant",
    content: [{ type: "output_text", text: "There is a.txt.", annotations: [] }],
  },
];

function text(listed: readonly Fields[]): string {
  const session = { timestamp: "2025-05-17T21:29:00.000Z", id: sessionId, instructions: "" };
  return JSON.stringify({ session, items: listed }, null, 2);
}

function read(listed: readonly Fields[]): ReadSession {
  const session = readUnits("codex", text(listed), path);
  expect(refusals(session)).toEqual([]);
  return session;
}

describe("a session of Codex that is one document", () => {
  it("is recognized under any name, also when it is empty or cut", () => {
    for (const content of [text(items), text([]), text(items).slice(0, 300), JSON.stringify(JSON.parse(text(items)))]) {
      const sample = { path: "/tmp/copy", head: Buffer.from(content), isWhole: true };
      expect(detectForeignFormat(sample)?.name).toBe("codex");
    }
  });

  it("states its id and time, its calls and its results", () => {
    const session = read(items);
    expect(talk(session)).toEqual([
      "user: Run ls",
      "assistant: (thinking)",
      "assistant: ?c1",
      `=c1 toolResult: ${output}`,
      "assistant: There is a.txt.",
    ]);
    expect(session.reader.sessionId).toBe(sessionId);
    expect(session.records[1]?.record.timestamp).toBe("2025-05-17T21:29:00.000Z");
    expect(session.findings).toEqual([]);
  });

  it("keeps the program's notices, which no model got", () => {
    const session = read(items);
    const notices = session.records.filter(({ record }) => record["customType"] === "codex.notice");
    expect(notices.map(({ side, record }) => [side, (record["data"] as Fields)["role"]])).toEqual([[true, "system"]]);
  });

  it("has no command that resumes it, unlike a file of lines", () => {
    const resume = foreignFormats.get("codex")?.resume;
    expect(resume?.(sessionId, path)).toBeNull();
    expect(resume?.(sessionId, path.replace(/json$/, "jsonl"))).toEqual(["codex", "resume", sessionId]);
  });
});
