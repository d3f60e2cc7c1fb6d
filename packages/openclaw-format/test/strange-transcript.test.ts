import { describe, expect, it } from "vitest";
import { strangeTranscript } from "../src/strange-transcript.ts";

function strange(...lines: readonly unknown[]): string | null {
  const text = lines.map((line) => `${typeof line === "string" ? line : JSON.stringify(line)}\n`).join("");
  return strangeTranscript(Buffer.from(text))?.what ?? null;
}

const header = { type: "session", version: 3, id: "s", timestamp: "2026-01-02T03:04:05.000Z", cwd: "/" };
const message = { type: "message", id: "a", parentId: null, timestamp: "", message: { role: "user", content: "\\r{" } };
const uuid = "6d1c94d8-5f0c-4d53-8a3c-0a8b7d2f9f11";

describe("a transcript that is none of ours", () => {
  it.each([
    ["of a turn", [{ type: "user", uuid, parentUuid: null, sessionId: uuid, message: { role: "user", content: "x" } }]],
    ["of a title", [{ type: "summary", summary: "x", leafUuid: uuid }]],
    [
      "behind notes",
      [{ type: "queue-operation" }, { type: "system", uuid, parentUuid: uuid, sessionId: uuid, content: "" }],
    ],
  ])("is known as Claude Code's by a line %s", (_, lines) => {
    expect(strange(...lines)).toBe("is a transcript of Claude Code");
  });

  it.each([["session_meta"], ["response_item"], ["event_msg"], ["turn_context"]])(
    "is known as Codex's by %s",
    (type) => {
      expect(strange({ timestamp: "2026-01-02T03:04:05.000Z", type, payload: {} })).toBe("is a transcript of Codex");
    },
  );

  it("is known by carriage returns alone", () => {
    const text = [header, message, message].map((line) => `${JSON.stringify(line)}\r`).join("");
    expect(strangeTranscript(Buffer.from(text))?.remedy).toContain("tr '\\r' '\\n'");
    expect(strangeTranscript(Buffer.from(text.replaceAll("\r", "\r\n")))).toBeNull();
  });

  it("is nothing of ours, and nothing unknown", () => {
    expect(strange(header, message)).toBeNull();
    expect(strange({ role: "user", content: "x" })).toBeNull();
    expect(strange(message, "{broken", '{"uuid":"x"}')).toBeNull();
    expect(strangeTranscript(new Uint8Array())).toBeNull();
    expect(strangeTranscript(Buffer.from("text\rtext"))).toBeNull();
  });
});
