import { readFileSync } from "node:fs";
import { foreignFormats } from "@throughline/foreign-formats";
import { describe, expect, it } from "vitest";
import { corpusFiles } from "../corpus-files.ts";
import { readUnits, refusals, talk } from "../read-units.ts";
import { writtenDocument } from "../written-session.ts";

type Fields = Readonly<Record<string, unknown>>;

const path = "/p/session.json";
const created = 1_778_178_631_267;
const text = (words: string, fields: Fields = {}): Fields => ({
  id: `prt_${words}`,
  type: "text",
  text: words,
  ...fields,
});
const tool = (callID: string, state: Fields): Fields => ({
  type: "tool",
  tool: "read",
  callID,
  state: { input: { a: 1 }, ...state },
});

function user(id: string, ...parts: readonly Fields[]): Fields {
  return { info: { id, role: "user", time: { created }, agent: "build" }, parts };
}

function reply(id: string, fields: Fields, ...parts: readonly Fields[]): Fields {
  const tokens = { input: 10, output: 5, reasoning: 3, cache: { read: 20, write: 2 } };
  const info = { id, role: "assistant", modelID: "m1", providerID: "anthropic", tokens, cost: 1, time: { created } };
  return { info: { ...info, ...fields }, parts };
}

function session(info: Fields, ...messages: readonly Fields[]): string {
  return JSON.stringify({ info: { id: "ses_1", directory: "/home/u", title: "A file", ...info }, messages }, null, 2);
}

const tools = [
  { type: "step-start" },
  { type: "reasoning", text: "Hm.", metadata: { anthropic: { signature: "c2ln" } } },
  text("I look."),
  tool("c1", { status: "completed", output: "hello" }),
  tool("c2", { status: "error", error: "No." }),
  tool("c3", { status: "running" }),
  { type: "step-finish", reason: "tool-calls" },
];
const whole = [
  user("msg_1", text("Read."), text("Note", { ignored: true })),
  reply("msg_2", {}, ...tools),
  reply("msg_3", {}, text("Done.")),
];

describe("a session of opencode", () => {
  it("is read by its messages and their parts, with what the program counts", () => {
    const read = readUnits("opencode", session({ parentID: "ses_0" }, ...whole), path);
    expect(talk(read)).toEqual([
      "user: Read.",
      "assistant: (thinking) I look. ?c1 ?c2 ?c3",
      "=c1 toolResult: hello",
      "=c2 toolResult: No.",
      "assistant: Done.",
    ]);
    expect(read.context.messages[1]).toMatchObject({
      model: "m1",
      provider: "anthropic",
      usage: { input: 10, output: 8, reasoning: 3, cacheRead: 20, cacheWrite: 2 },
    });
    expect([read.reader.sessionId, read.reader.spawnedBy, read.reader.entry]).toEqual([
      "ses_1",
      "ses_0",
      { cwd: "/home/u", title: "A file", titleBy: "import" },
    ]);
    expect(read.findings).toEqual([]);
    expect(refusals(read)).toEqual([]);
    expect(read.records.slice(1).every(({ tsMs }) => tsMs === created)).toBe(true);
  });

  it("continues from before what was taken back, and keeps that", () => {
    const last = reply("msg_3", {}, text("Done."), text("And more."));
    const all = readUnits("opencode", session({ revert: { messageID: "msg_2" } }, ...whole), path);
    expect(talk(all)).toEqual(["user: Read."]);
    expect(all.records.filter(({ type }) => type === "message")).toHaveLength(5);
    const part = readUnits(
      "opencode",
      session(
        { revert: { messageID: "msg_3", partID: "prt_And more." } },
        whole[0] ?? {},
        last,
        user("msg_4", text("No.")),
      ),
      path,
    );
    expect(talk(part)).toEqual(["user: Read.", "assistant: Done."]);
  });

  it("has the summary of a compaction in place of what it summarizes", () => {
    const marks = [
      user("msg_4", { type: "compaction", auto: true, tail_start_id: "msg_3" }),
      reply("msg_5", { summary: true }, text("They read.")),
      user("msg_6", text("And now?")),
    ];
    const read = readUnits("opencode", session({}, ...whole, ...marks), path);
    expect(talk(read)).toEqual(["compactionSummary: They read.", "assistant: Done.", "user: And now?"]);
    const failed = [
      marks[0] ?? {},
      reply("msg_5", { summary: true, error: { name: "X" } }, text("They")),
      marks[2] ?? {},
    ];
    expect(talk(readUnits("opencode", session({}, ...whole, ...failed), path))).toHaveLength(6);
  });

  it("leaves out a reply that failed, not one that was stopped; and what was cleared", () => {
    const read = readUnits(
      "opencode",
      session(
        {},
        user("msg_1", text("Hi")),
        reply("msg_2", { error: { name: "APIError", data: { message: "overloaded" } } }, text("He")),
        reply("msg_3", { error: { name: "MessageAbortedError" } }, text("Hello, I")),
        reply("msg_4", {}, tool("c1", { status: "completed", output: "long", time: { compacted: 1 } })),
      ),
      path,
    );
    expect(read.context.messages.filter(({ role }) => role === "assistant")).toMatchObject([
      { stopReason: "error" },
      { stopReason: "stop" },
      { stopReason: "toolUse" },
    ]);
    expect(talk(read).at(-1)).toBe("=c1 toolResult: [Old tool result content cleared]");
  });

  it("keeps what nobody knows", () => {
    const odd = [
      { novelty: 1 },
      { info: { id: "x", role: "nobody" }, parts: [] },
      { info: { id: "__proto__", role: "user" }, parts: "none" },
    ];
    const read = readUnits("opencode", session({}, ...odd, { info: null } as never, ...whole), path);
    expect(talk(read)).toHaveLength(5 + 1);
    expect(read.findings).toEqual([]);
  });

  it.skipIf(corpusFiles("opencode", ".json").length === 0)("of the corpus has every message, and its tokens", () => {
    for (const file of corpusFiles("opencode", ".json")) {
      const content = readFileSync(file, "utf8");
      const read = readUnits("opencode", content, file);
      const { messages } = JSON.parse(content) as { readonly messages: readonly Fields[] };
      const tokens = messages.map(
        ({ info }) => ((info as Fields)["tokens"] as { readonly total?: number } | undefined)?.total ?? 0,
      );
      const counted = read.records.map(
        ({ record }) => (record["message"] as { usage?: { totalTokens: number } } | undefined)?.usage?.totalTokens ?? 0,
      );
      const sum = (counts: readonly number[]): number => counts.reduce((all, one) => all + one, 0);
      expect(sum(counted)).toBe(sum(tokens));
      expect(read.context.messages.filter(({ role }) => role === "assistant")).toHaveLength(messages.length - 1);
    }
  });

  it("is written as it is exported, with ids that sort, and means the same", () => {
    const read = readUnits("opencode", session({}, ...whole), path);
    const { text: written, losses } = writtenDocument("opencode", read);
    expect(losses).toEqual(["changed id of the session", "made result of a call without one"]);
    const sample = { path, head: Buffer.from(written), isWhole: true };
    expect(foreignFormats.get("opencode")?.detect(sample)).toBe("certain");
    const again = readUnits("opencode", written, path);
    expect(talk(again).slice(0, 4)).toEqual(talk(read).slice(0, 4));
    expect(talk(again).at(-1)).toBe("assistant: Done.");
    const { messages } = JSON.parse(written) as { readonly messages: readonly { readonly info: Fields }[] };
    const ids = messages.map(({ info }) => String(info["id"]));
    expect(ids).toEqual(ids.toSorted());
    expect(ids.every((id) => /^msg_[0-9a-f]{26}$/.test(id))).toBe(true);
  });
});
