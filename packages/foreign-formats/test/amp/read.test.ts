import { detectForeignFormat } from "@throughline/foreign-formats";
import { describe, expect, it } from "vitest";
import { readUnits, refusals, talk, type ReadSession } from "../read-units.ts";
import { amp, ampCall, ampReply, ampResult, ampThread, ampUser, threadId } from "./sample.ts";

type Fields = Readonly<Record<string, unknown>>;

function read(thread: Fields, path: string = `/h/.local/share/amp/threads/${threadId}.json`): ReadSession {
  const session = readUnits("amp", JSON.stringify(thread, null, 2), path);
  expect(refusals(session)).toEqual([]);
  return session;
}

const asked = ampUser([{ type: "text", text: "Go" }]);

function resultOf(run: Fields): string | undefined {
  return talk(read(ampThread([asked, ampReply([ampCall("c1", "Bash", {})]), ampUser([ampResult("c1", run)])]))).at(-1);
}

describe("a thread of Amp", () => {
  it("has its messages, calls and results, and nothing of roles that are not known", () => {
    const session = read(amp);
    expect(talk(session)).toEqual([
      "user: Fix the bound",
      "assistant: (thinking) ?toolu_01 ?toolu_02",
      '=toolu_01 toolResult: {"output":"7: n\\n","exitCode":0}',
      "=toolu_02 toolResult: no such file",
      "assistant: Done.",
    ]);
    expect(session.context.messages[3]).toMatchObject({ isError: true, toolName: "edit_file" });
    expect(session.records.map(({ record }) => record["customType"])).toContain("amp.info");
    expect(session.findings).toEqual([]);
  });

  it("states its id, title, folder, repository without a secret, and branch", () => {
    for (const path of [undefined, "/tmp/copy.json"]) {
      const { reader } = read(amp, path);
      expect([reader.sessionId, reader.entry]).toEqual([
        threadId,
        {
          title: "Fix the loop",
          titleBy: "import",
          cwd: "/home/u/proj x",
          repository: "https://example.com/r.git",
          branch: "main",
        },
      ]);
    }
  });

  it("is recognized by its id, under any name, and not without it", () => {
    const detected = (thread: Fields): string | undefined =>
      detectForeignFormat({ path: "/tmp/copy", head: Buffer.from(JSON.stringify(thread)), isWhole: true })?.name;
    expect(detected(amp)).toBe("amp");
    expect(detected(ampThread([]))).toBe("amp");
    expect(detected(ampThread([asked], { id: "T 1" }))).not.toBe("amp");
    expect(detected(ampThread([asked], { v: undefined, created: undefined }))).not.toBe("amp");
  });

  it("has results of failed, cancelled and refused calls, and none of a call that runs", () => {
    expect(resultOf({ status: "done", result: "text" })).toBe("=c1 toolResult: text");
    expect(resultOf({ status: "done" })).toBe("=c1 toolResult: ");
    expect(resultOf({ status: "cancelled", reason: "esc" })).toBe("=c1 toolResult: esc");
    expect(resultOf({ status: "rejected-by-user" })).toBe("=c1 toolResult: rejected-by-user");
    expect(resultOf({ status: "error", error: { message: "fail" } })).toBe("=c1 toolResult: fail");
    expect(resultOf({ status: "in-progress", progress: "..." })).toBe("assistant: ?c1");
  });

  it("counts the three parts of a prompt, and for models without paid writes two", () => {
    const usages = (usage: Fields): unknown =>
      read(ampThread([asked, ampReply([{ type: "text", text: "A" }], usage)])).records.flatMap(({ record }) => {
        const found = (record["message"] as Fields | undefined)?.["usage"];
        return found === undefined ? [] : [found];
      });
    expect(usages({})).toEqual([{ input: 12, output: 80, cacheRead: 3400, cacheWrite: 900, totalTokens: 4392 }]);
    expect(usages({ model: "gpt-5.4", inputTokens: 0 })).toEqual([
      { input: 900, output: 80, cacheRead: 3400, cacheWrite: 0, totalTokens: 4380 },
    ]);
    expect(
      usages({ inputTokens: -1, outputTokens: "x", cacheCreationInputTokens: 0, cacheReadInputTokens: 0 }),
    ).toEqual([]);
  });

  it("has the time of a message, and of the reply before where a message has none", () => {
    const { meta: _meta, ...undated } = ampUser([{ type: "text", text: "More" }]);
    const times = read(ampThread([asked, ampReply([{ type: "text", text: "A" }]), undated])).records.flatMap(
      ({ record }) => (record.type === "message" ? [record.timestamp] : []),
    );
    expect(times).toEqual(["2026-09-21T14:13:20.000Z", "2026-09-21T13:46:45.000Z", "2026-09-21T13:46:45.000Z"]);
  });
});
