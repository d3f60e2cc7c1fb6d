import { describe, expect, it } from "vitest";
import { detectForeignFormat, foreignFormats } from "@throughline/foreign-formats";
import { programTotal, readTotal } from "../program-usage.ts";
import { jsonLines, readUnits, refusals, talk, type ReadSession } from "../read-units.ts";
import { answered, called, type Fields, idOf, line, replied, said, sessionId, sessions, system } from "./sessions.ts";

const path = `/h/.qwen/projects/-w/chats/${sessionId}.jsonl`;

function read(...lines: readonly (Fields | string)[]): ReadSession {
  const session = readUnits("qwen-code", jsonLines(...lines), path);
  expect(refusals(session)).toEqual([]);
  return session;
}

/** The words of each message, as the sessions state them. The parts of a reply are one message for every provider. */
function words(session: ReadSession): readonly string[] {
  const found: string[] = [];
  for (const [at, said] of talk(session).entries()) {
    const message = session.context.messages[at];
    const isPart = message?.role === "assistant" && message.isFragment;
    if (isPart) found.push(`${found.pop() ?? ""}${said.replace("assistant: ", "")}`);
    else found.push(said.replace("toolResult: ", "").replace(/^custom:/, "user:"));
  }
  return found;
}

function sampleOf(text: string): { path: string; head: Uint8Array; isWhole: boolean } {
  return { path: "/tmp/copy", head: Buffer.from(text), isWhole: true };
}

describe("a session of Qwen Code", () => {
  it.each(Object.keys(sessions))("is what the program resumes: %s", (name) => {
    const { lines, resumed } = sessions[name] ?? { lines: [], resumed: [] };
    const session = read(...lines);
    expect(words(session)).toEqual(resumed);
    expect(session.findings.map(({ code }) => code)).toEqual(
      name === "a parent that is nowhere" ? ["ORPHAN_PARENT"] : [],
    );
    expect(session.reader.sessionId).toBe(sessionId);
    expect(session.reader.entry["cwd"]).toBe("/w");
  });

  it("is no session of Claude Code, whose lines have the same ids", () => {
    const lines = [system(1, "custom_title", { customTitle: "T" }), said(2, "One"), replied(3, [{ text: "First." }])];
    for (const one of lines) {
      const sample = sampleOf(jsonLines(one));
      expect(detectForeignFormat(sample)?.name).toBe("qwen-code");
      expect(foreignFormats.get("claude-code")?.detect(sample)).toBeNull();
    }
  });

  it("counts each call once: those of replies with the reply, and the program's own beside it", () => {
    const event = (number: number, promptId: string, total: number): Fields =>
      system(number, "ui_telemetry", {
        uiEvent: {
          "event.name": "qwen-code.api_response",
          model: "qwen3-coder",
          input_token_count: total - 10,
          output_token_count: 10,
          cached_content_token_count: 20,
          thoughts_token_count: 4,
          total_token_count: total,
          prompt_id: promptId,
        },
      });
    const usageMetadata = {
      promptTokenCount: 90,
      cachedContentTokenCount: 20,
      candidatesTokenCount: 10,
      thoughtsTokenCount: 4,
      totalTokenCount: 100,
    };
    const lines = [
      said(1, "One"),
      event(2, `${sessionId}########0`, 100),
      replied(3, [{ text: "First." }], { usageMetadata }),
      event(4, "compress-1796044852259", 50),
      event(5, `${sessionId}#managed-auto-memory-extractor-d1184f9d#0`, 70),
    ];
    const session = read(...lines);
    expect(readTotal(session)).toBe(220);
    expect(programTotal("qwen-code", jsonLines(...lines))).toBe(220);
    const [reply] = session.records.flatMap(({ record }) => {
      const usage = (record["message"] as Fields | undefined)?.["usage"];
      return usage === undefined ? [] : [usage];
    });
    expect(reply).toEqual({ input: 70, cacheRead: 20, cacheWrite: 0, output: 10, reasoning: 4, totalTokens: 100 });
  });

  it("adds thoughts to the output where the total has them beside it, as Gemini's models count", () => {
    const usageMetadata = {
      promptTokenCount: 90,
      candidatesTokenCount: 10,
      thoughtsTokenCount: 4,
      totalTokenCount: 104,
    };
    const session = read(said(1, "One"), replied(2, [{ text: "First." }], { usageMetadata }));
    expect(readTotal(session)).toBe(104);
  });

  it("has the name that a person gave it, and the program's own title beside it", () => {
    const titled = (customTitle: string, more: Fields = {}): Fields =>
      system(2, "custom_title", { customTitle, ...more });
    const named = read(said(1, "One"), titled("Of the program", { titleSource: "auto" }), titled("Mine"));
    expect(named.reader.entry).toMatchObject({ title: "Of the program", titleBy: "import", label: "Mine" });
  });

  it("marks the results of calls that failed or were cancelled", () => {
    const session = read(said(1, "One"), replied(2, [called("c1")]), answered(3, "c1", "no such file", "error"));
    const result = session.context.messages.find(({ role }) => role === "toolResult");
    expect(result).toMatchObject({ isError: true, toolName: "read_file" });
  });

  it("continues behind a line that cannot be read", () => {
    const session = read(said(1, "One"), '{"uuid":"broken', replied(3, [{ text: "First." }]));
    expect(words(session)).toEqual(["user: One", "assistant: First."]);
  });

  it("keeps the last line once when a copy of the file repeats it", () => {
    const last = replied(2, [{ text: "First." }, called("c1")]);
    const session = read(said(1, "One"), last, last);
    expect(session.records.map(({ record }) => record["customType"] ?? record.type)).toEqual([
      "message",
      "message",
      "qwen-code.repeated",
    ]);
  });

  it("is that of a sub-agent, with the session that started it and what the program gave it", () => {
    const sidechain = { isSidechain: true, agentId: "explore-7f3c" };
    const session = readUnits(
      "qwen-code",
      jsonLines(
        system(
          1,
          "agent_bootstrap",
          { kind: "fork", history: [{ role: "user", parts: [{ text: "Task" }] }] },
          sidechain,
        ),
        line(2, "user", {
          ...sidechain,
          subtype: "agent_launch_prompt",
          message: { role: "user", parts: [{ text: "Go" }] },
        }),
        replied(3, [{ text: "Done." }], sidechain),
      ),
      `/h/.qwen/projects/-w/subagents/${sessionId}/agent-explore-7f3c.jsonl`,
    );
    expect([session.reader.sessionId, session.reader.spawnedBy]).toEqual([
      `${sessionId}.agent-explore-7f3c`,
      sessionId,
    ]);
    expect(words(session)).toEqual(["user: Task", "user: Go", "assistant: Done."]);
  });

  it("cuts a compressed history of more than 400 contents to the newest, and reports it", () => {
    const compressedHistory = Array.from({ length: 410 }, (_, at) => ({
      role: at % 2 === 0 ? "user" : "model",
      parts: [{ text: `Content ${at}` }],
    }));
    const session = read(said(1, "One"), system(2, "chat_compression", { info: {}, compressedHistory }));
    expect(session.findings.map(({ code }) => code)).toEqual(["RECORD_MISSING"]);
    expect(words(session)).toHaveLength(400);
    expect(words(session)[0]).toBe("user: Content 10");
  });

  it("keeps the head when the program notes an artifact on an earlier line", () => {
    const artifact = system(5, "session_artifact_event", { changes: [] }, { parentUuid: idOf(2) });
    const lines = sessions["a plain conversation"]?.lines ?? [];
    expect(words(read(...lines, artifact))).toEqual(sessions["a plain conversation"]?.resumed);
  });
});
