import { detectForeignFormat, foreignFormats } from "@throughline/foreign-formats";
import { describe, expect, it } from "vitest";
import { readUnits, refusals, talk, type ReadSession } from "../read-units.ts";

type Fields = Readonly<Record<string, unknown>>;

const id = "1796045438938_gqe0t";
const folder = `/h/.cline/data/sessions/${id}`;
const path = `${folder}/${id}.messages.json`;
const user = (content: readonly Fields[]): Fields => ({ id: "msg_u", role: "user", content, ts: 1_796_045_439_402 });
const reply = (content: readonly Fields[], more: Fields = {}): Fields => ({
  id: "msg_a",
  role: "assistant",
  content,
  ts: 1_796_045_439_785,
  modelInfo: { id: "gpt-4.1", provider: "openai-compatible" },
  ...more,
});
const call: Fields = { type: "tool_use", id: "c1", name: "run_commands", input: { commands: ["ls"] } };
const result = (content: unknown): Fields => ({
  type: "tool_result",
  tool_use_id: "c1",
  name: "run_commands",
  content,
});
const metrics = { inputTokens: 100, outputTokens: 15, cacheReadTokens: 60, cacheWriteTokens: 30, cost: 0.01 };

/** What version 3.0.65 wrote of a run, with short texts. */
function session(messages: readonly Fields[], head: Fields = {}): string {
  const origin = { source: "cli", mode: "user", sessionId: id, version: "3.0.65" };
  const about = { version: 1, updated_at: "2026-11-30T13:30:40.129Z", agent: "lead", sessionId: id, origin, ...head };
  return `${JSON.stringify({ ...about, messages, system_prompt: "You are Cline." }, null, 2)}\n`;
}

function read(messages: readonly Fields[], head: Fields = {}): ReadSession {
  const found = readUnits("cline", session(messages, head), path);
  expect(refusals(found)).toEqual([]);
  return found;
}

const asked = user([{ type: "text", text: "Run ls" }]);

describe("a session of Cline's newer program", () => {
  it("is recognized by what stands before its messages, without times and under any name", () => {
    const { ts: _ts, ...undated } = asked;
    for (const text of [session([undated]), session([])]) {
      const sample = { path: "/tmp/copy", head: Buffer.from(text), isWhole: true };
      expect(detectForeignFormat(sample)?.name).toBe("cline");
    }
  });

  it("states its id, its model, its calls and its results", () => {
    const found = read([asked, reply([{ type: "text", text: "I run it." }, call]), user([result("a.txt")])]);
    expect(talk(found)).toEqual(["user: Run ls", "assistant: I run it. ?c1", "=c1 toolResult: a.txt"]);
    expect([found.reader.sessionId, found.reader.spawnedBy]).toEqual([id, null]);
    expect(found.context.messages[1]).toMatchObject({ model: "gpt-4.1", provider: "openai-compatible" });
    expect(found.findings).toEqual([]);
  });

  it("has results of any form: the program sends them as JSON, with their images as images", () => {
    const image = { type: "image", data: "aGk=", mediaType: "image/png" };
    const operations = [{ query: "ls", result: "a.txt\n", success: true }];
    const shown = (content: unknown): string | undefined =>
      talk(read([asked, reply([call]), user([result(content)])])).at(-1);
    // Version 3.0.65 sent this text as the result.
    expect(shown(operations)).toBe(`=c1 toolResult: ${JSON.stringify(operations)}`);
    expect(shown([{ query: "a.png", result: [image] }])).toBe(
      '=c1 toolResult: [{"query":"a.png","result":["[image]"]}] [image]',
    );
    expect(shown([{ type: "text", text: "plain" }, image])).toBe("=c1 toolResult: plain [image]");
    expect(shown([])).toBe("=c1 toolResult: ");
  });

  it("has the text of files that a person mentioned, and images that a person sent", () => {
    const found = read([
      user([
        { type: "text", text: "Look" },
        { type: "file", path: "/w/a.txt", content: "hello" },
        { type: "image", data: "aGk=", mediaType: "image/png" },
      ]),
    ]);
    expect(talk(found)).toEqual(["user: Look hello [image]"]);
  });

  it("counts cached tokens apart from the input, and has the cost that the program states", () => {
    const found = read([asked, reply([{ type: "text", text: "Done." }], { metrics })]);
    const message = found.records.map(({ record }) => record["message"] as Fields | undefined).at(-2);
    expect(message?.["usage"]).toEqual({
      input: 10,
      cacheRead: 60,
      cacheWrite: 30,
      output: 15,
      totalTokens: 115,
      cost: { total: 0.01 },
    });
  });

  it("keeps a signature as Anthropic's only where a model of Anthropic's wrote it", () => {
    const signed = { type: "thinking", thinking: "Hm.", signature: "c2ln" };
    const apiOf = (model: string): unknown => {
      const modelInfo = { id: model, provider: "cline" };
      const found = read([asked, reply([signed, { type: "text", text: "Done." }], { modelInfo })]);
      return (found.records.at(-2)?.record["message"] as Fields | undefined)?.["api"];
    };
    expect(apiOf("anthropic/claude-opus-4.8")).toBe("anthropic-messages");
    expect(apiOf("google/gemini-3-pro")).toBeUndefined();
  });

  it("is that of a sub-agent, with the session that started it", () => {
    const spawned = (head: Fields): unknown => read([asked], head).reader.spawnedBy;
    expect(spawned({ agent: "subagent", sessionId: `${id}__explore` })).toBe(id);
    expect(spawned({ agent: "teammate", sessionId: `${id}__teamtask__a__b`, origin: { parentThreadId: "p1" } })).toBe(
      "p1",
    );
  });

  it("has its folder and its title in the file beside it, and a note where the program sends a summary", () => {
    const companion = foreignFormats.get("cline")?.companion;
    expect(companion?.path(path)).toBe(`${folder}/${id}.json`);
    const manifest = { version: 1, session_id: id, cwd: "/w", metadata: { title: "Run ls" } };
    expect(companion?.entryOf(JSON.stringify(manifest), id, path)).toEqual({
      cwd: "/w",
      title: "Run ls",
      titleBy: "import",
    });
    // The session of a sub-agent has the folder of the session that started it, and not its title.
    expect(companion?.entryOf(JSON.stringify(manifest), `${id}__explore`, path)).toEqual({ cwd: "/w" });
    expect(companion?.noteOf?.(JSON.stringify(manifest), id)).toBeNull();
    const compacted = { ...manifest, compaction_path: `${folder}/${id}.compaction.json` };
    expect(companion?.noteOf?.(JSON.stringify(compacted), id)).toContain(
      "summary in place of the session's older messages",
    );
  });

  it("is resumed by the command line, unlike a task of the extension", () => {
    const resume = foreignFormats.get("cline")?.resume;
    expect(resume?.(id, path)).toEqual(["cline", "--id", id]);
    expect(resume?.("1771111111111", path)).toBeNull();
  });
});
