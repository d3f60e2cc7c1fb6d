import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { foreignFormats } from "@throughline/foreign-formats";
import { jsonLines, readUnits, refusals, talk, type ReadSession } from "../read-units.ts";
import { programTotal, readTotal } from "../program-usage.ts";
import { kimiCall, kimiEvent, kimiHead, kimiResult } from "./sample.ts";

type Fields = Readonly<Record<string, unknown>>;

const hash = createHash("md5").update("/home/u/app").digest("hex");
const id = "54519cf2-0636-4c90-924d-6a77bc43ad98";
const path = `/home/u/.kimi/sessions/${hash}/${id}/wire.jsonl`;

function read(...lines: readonly (Fields | string)[]): ReadSession {
  const session = readUnits("kimi-cli", jsonLines(kimiHead, ...lines), path);
  expect(refusals(session)).toEqual([]);
  return session;
}

const asked = (text: string): Fields => kimiEvent(0, "TurnBegin", { user_input: text });
const step = (n: number): Fields => kimiEvent(n, "StepBegin", { n });
const said = (text: string): Fields => kimiEvent(2, "ContentPart", { type: "text", text });
const thought = (think: string): Fields => kimiEvent(2, "ContentPart", { type: "think", think, encrypted: null });
const ended = kimiEvent(3, "TurnEnd");

describe("a session of Kimi CLI", () => {
  it("is read by its events, and what the model was sent counts", () => {
    const image = { type: "image_url", image_url: { url: "data:image/png;base64,aGk=", id: null } };
    const session = read(
      kimiEvent(0, "TurnBegin", { user_input: [{ type: "text", text: "What is this?" }, image] }),
      step(1),
      thought("Hm."),
      said("I look."),
      kimiCall(2, "c1", "ReadFile", '{"path":"a.txt"}'),
      kimiCall(2, "c2", "Shell", '{"command":"make"}'),
      kimiResult(3, "c2", "out", { is_error: true, message: "Failed with exit code 2." }),
      kimiResult(3, "c1", [{ type: "text", text: "hello" }], { message: "1 line read." }),
      kimiEvent(3, "SteerInput", { user_input: "Be quick" }),
      step(2),
      said("Done."),
      ended,
    );
    expect(talk(session)).toEqual([
      "user: What is this? [image]",
      "assistant: (thinking)",
      "assistant: I look.",
      "assistant: ?c1",
      "assistant: ?c2",
      "=c2 toolResult: <system>ERROR: Failed with exit code 2.</system> out",
      "=c1 toolResult: <system>1 line read.</system> hello",
      "user: Be quick",
      "assistant: Done.",
    ]);
    const results = session.context.messages.filter((message) => message.role === "toolResult");
    expect(results.map(({ toolName, isError }) => [toolName, isError])).toEqual([
      ["Shell", true],
      ["ReadFile", false],
    ]);
    expect(session.records.at(-1)?.record["timestamp"]).toBe("2026-09-21T14:13:23.250Z");
    expect([session.reader.sessionId, session.reader.spawnedBy, session.findings]).toEqual([id, null, []]);
  });

  it("has the result that came before the next call of the same step", () => {
    const session = read(
      asked("Go"),
      step(1),
      kimiCall(1, "c1", "A", "{}"),
      kimiResult(1, "c1", "one"),
      kimiCall(1, "c2", "B", "{}"),
      kimiResult(1, "c2", ""),
      ended,
    );
    expect(talk(session).filter((one) => one.startsWith("="))).toEqual([
      "=c1 toolResult: one",
      "=c2 toolResult: <system>Tool output is empty.</system>",
    ]);
  });

  it("keeps arguments that are not JSON", () => {
    const session = read(asked("Go"), step(1), kimiCall(1, "c1", "A", '{"path":"a.t'), kimiResult(1, "c1", "ok"));
    const call = session.context.messages.flatMap(({ content }) => content.filter(({ type }) => type === "toolCall"));
    expect(call).toMatchObject([{ arguments: {}, partialJson: '{"path":"a.t' }]);
  });

  it("leaves a failed attempt, and commands that the program answered, off the branch", () => {
    const retry = kimiEvent(2, "StepRetry", { n: 1, next_attempt: 2, max_attempts: 3, wait_s: 1, error_type: "E" });
    const session = read(
      asked("/help"),
      said("Commands: …"),
      ended,
      asked("Hi"),
      step(1),
      said("Hal"),
      retry,
      said("Hello."),
      ended,
      asked("/usage"),
      ended,
    );
    expect(talk(session)).toEqual(["user: Hi", "assistant: Hello."]);
    expect(session.records).toHaveLength(12);
  });

  it("keeps the words of a step that was interrupted", () => {
    const session = read(asked("Hi"), step(1), said("UNFINISHED"), kimiEvent(2, "StepInterrupted"), asked("Again"));
    expect(talk(session)).toEqual(["user: Hi", "assistant: UNFINISHED", "user: Again"]);
  });

  it("names a compaction, whose summary is in another file", () => {
    const compaction = [kimiEvent(3, "CompactionBegin"), kimiEvent(3, "CompactionEnd")];
    const session = read(asked("Hi"), step(1), ...compaction, said("Hello."), ...compaction, ended);
    expect(session.findings.map(({ code, line }) => [code, line])).toEqual([["SOURCE_UNREAD", 4]]);
  });

  it("leaves the events of sub-agents and requests for approval aside, and keeps what nobody knows", () => {
    const inner = { parent_tool_call_id: "c1", event: { type: "ContentPart", payload: { type: "text", text: "in" } } };
    const session = read(
      asked("Hi"),
      step(1),
      kimiEvent(2, "SubagentEvent", inner),
      kimiEvent(2, "ApprovalRequest", { id: "a" }),
      { type: "novelty" },
      { timestamp: 1, message: { type: "TurnBegin", payload: { user_input: 5 } } },
      kimiEvent(2, "ContentPart", { type: "video", video: 1 }),
      kimiEvent(2, "ToolResult", {}),
      "{broken",
      said("Hello."),
    );
    expect(session.findings.map(({ code, line }) => [code, line])).toEqual([
      ["RECORD_INVALID", 7],
      ["RECORD_INVALID", 9],
      ["LINE_MALFORMED", 10],
    ]);
    expect(session.records).toHaveLength(11);
  });

  it("counts each call by its status", () => {
    const counts = { input_other: 3, output: 20, input_cache_read: 7, input_cache_creation: 2 };
    const status = kimiEvent(2, "StatusUpdate", { token_usage: counts, message_id: "m" });
    const lines = [
      kimiHead,
      asked("Hi"),
      step(1),
      said("A"),
      status,
      kimiEvent(2, "StatusUpdate", { plan_mode: true }),
    ];
    const session = readUnits("kimi-cli", jsonLines(...lines), path);
    expect(session.records.filter(({ type }) => type === "usage").map(({ record }) => record["usage"])).toEqual([
      { input: 3, output: 20, cacheRead: 7, cacheWrite: 2, totalTokens: 32 },
    ]);
    expect([readTotal(session), programTotal("kimi-cli", jsonLines(...lines))]).toEqual([32, 32]);
  });

  it("has its folder and its name from the files beside it", () => {
    const companion = foreignFormats.get("kimi-cli")?.companion;
    expect(companion?.path(path)).toEqual([
      `/home/u/.kimi/sessions/${hash}/${id}/state.json`,
      "/home/u/.kimi/kimi.json",
    ]);
    const folders = { work_dirs: [{ path: "/other" }, { path: "/home/u/app", kaos: "local" }, null] };
    expect(companion?.entryOf(JSON.stringify(folders), id, path)).toEqual({ cwd: "/home/u/app" });
    const state = { version: 1, custom_title: " Fix the login " };
    expect(companion?.entryOf(JSON.stringify(state), id, path)).toEqual({ title: "Fix the login", titleBy: "import" });
    expect(companion?.entryOf("{", id, path)).toEqual({});
    expect(companion?.path("/tmp/wire.jsonl")).toBeNull();
  });

  it("of a sub-agent names the session that started it", () => {
    const file = `/home/u/.kimi/sessions/${hash}/${id}/subagents/a1b2/wire.jsonl`;
    const { reader } = readUnits("kimi-cli", jsonLines(kimiHead, asked("Look")), file);
    expect([reader.sessionId, reader.spawnedBy]).toEqual(["a1b2", id]);
    const companion = foreignFormats.get("kimi-cli")?.companion;
    expect(companion?.path(file)).toEqual([
      `/home/u/.kimi/sessions/${hash}/${id}/subagents/a1b2/meta.json`,
      "/home/u/.kimi/kimi.json",
    ]);
  });
});
