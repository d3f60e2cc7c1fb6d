import { findRecordProblem } from "@throughline/core/internal";
import { renderOpenAiResponses } from "@throughline/history/openai";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { corpusFiles } from "../corpus-files.ts";
import { jsonLines, readUnits, refusals, talk, type ReadSession } from "../read-units.ts";
import {
  call,
  event,
  header,
  instructions,
  item,
  line,
  output,
  said,
  sessionId,
  settings,
  thought,
  tokens,
  typed,
  userItem,
  type Fields,
} from "./lines.ts";

const path = `/h/.codex/sessions/2026/05/07/rollout-2026-05-07T18-27-42-${sessionId}.jsonl`;

function read(...lines: readonly (Fields | readonly Fields[] | string)[]): ReadSession {
  const session = readUnits("codex", jsonLines(...lines.flat()), path);
  expect(refusals(session)).toEqual([]);
  return session;
}

function usageOf({ records }: ReadSession): Readonly<Record<string, number>> {
  const sum = { input: 0, output: 0, cacheRead: 0, reasoning: 0 };
  for (const { type, record } of records) {
    if (type !== "usage") continue;
    const usage = record["usage"] as Partial<typeof sum>;
    for (const name of Object.keys(sum) as (keyof typeof sum)[]) sum[name] += usage[name] ?? 0;
  }
  return sum;
}

const environment = "<environment_context>\n  <cwd>/w</cwd>\n</environment_context>";

describe("a session of Codex", () => {
  it("is read as replies of several items, and what the program says is told from what a person typed", () => {
    const session = read(
      header(),
      instructions("Be careful."),
      item(userItem(environment)),
      settings("gpt-5.1-codex"),
      typed("List the files."),
      thought(),
      said("I list them."),
      call("c1"),
      call("c2"),
      output("c1"),
      output("c2", { content: "no such file", success: false }),
      said("Done."),
    );
    expect(talk(session)).toEqual([
      "system: Be careful.",
      `custom: ${environment}`,
      "user: List the files.",
      "assistant: (thinking)",
      "assistant: I list them.",
      "assistant: ?c1",
      "assistant: ?c2",
      "=c1 toolResult: of c1",
      "=c2 toolResult: no such file",
      "assistant: Done.",
    ]);
    const replies = session.context.messages.filter(({ role }) => role === "assistant");
    const ids = replies.map((reply) => (reply.role === "assistant" ? reply.responseId : null));
    expect(new Set(ids.slice(0, 4)).size).toBe(1);
    expect(ids[4]).not.toBe(ids[0]);
    expect(session.context.messages[8]).toMatchObject({ isError: true, toolName: "exec_command" });
    expect(session.context.model).toEqual({ provider: "openai", modelId: "gpt-5.1-codex" });
    expect(session.context.thinkingLevel).toBe("medium");
    expect(session.reader.entry).toEqual({ cwd: "/w" });
    expect(session.reader.sessionId).toBe(sessionId);
  });

  it("counts each call's tokens once, whatever is noted twice, and reasoning as a part of the output", () => {
    const session = read(
      header(),
      settings("gpt-5.1-codex"),
      typed("Hi"),
      event("token_count", { info: null }),
      said("Hello."),
      tokens(100, 60, 30, 10),
      tokens(100, 60, 30, 10),
      typed("Again"),
      said("Yes."),
      tokens(250, 160, 45, 12),
    );
    expect(usageOf(session)).toEqual({ input: 90, cacheRead: 160, output: 45, reasoning: 12 });
    expect(session.records.filter(({ type }) => type === "usage")).toHaveLength(2);
  });

  it("continues behind a compaction from its list, and one that begins with the summary is a summary", () => {
    const items = [userItem("They spoke."), userItem("Keep this.")];
    const lines = (replacement: readonly Fields[]): readonly Fields[] => [
      header(),
      ...typed("Long ago."),
      said("Indeed."),
      line("compacted", { message: "They spoke.", replacement_history: replacement }),
      ...typed("And now?"),
    ];
    expect(talk(read(...lines(items)))).toEqual([
      "compactionSummary: They spoke.",
      "user: Keep this.",
      "user: And now?",
    ]);
    const listed = read(...lines(items.toReversed()));
    expect(talk(listed)).toEqual(["user: Keep this.", "user: They spoke.", "user: And now?"]);
    expect(listed.records.filter(({ record }) => record["derivedFrom"] !== undefined)).toHaveLength(2);
    expect(talk(read(...lines([])))).toEqual(["user: And now?"]);
  });

  it("keeps what people said behind a compaction of an older version", () => {
    const session = read(
      header(),
      item(userItem(environment)),
      typed("One."),
      said("First."),
      typed("Two."),
      said("Second."),
      line("compacted", { message: "They counted." }),
      typed("Three."),
    );
    expect(talk(session)).toEqual(["user: One.", "user: Two.", "user: They counted.", "user: Three."]);
  });

  it("takes back the newest turns, and what the program said before them", () => {
    const lines = [
      header(),
      instructions("Be careful."),
      ...typed("One."),
      said("First."),
      item(userItem(environment)),
      ...typed("Two."),
      said("Second."),
      ...typed("Three."),
      said("Third."),
    ];
    const after = typed("Four.");
    const talked = (turns: number): readonly string[] =>
      talk(read(...lines, event("thread_rolled_back", { num_turns: turns }), ...after));
    expect(talked(1)).toEqual([
      "system: Be careful.",
      "user: One.",
      "assistant: First.",
      `custom: ${environment}`,
      "user: Two.",
      "assistant: Second.",
      "user: Four.",
    ]);
    expect(talked(2)).toEqual(["system: Be careful.", "user: One.", "assistant: First.", "user: Four."]);
    expect(talked(7)).toEqual(["system: Be careful.", "user: Four."]);
    expect(talked(0)).toHaveLength(9);
  });

  it("has the conversation of before a compaction again when the turn with it is taken back", () => {
    const session = read(
      header(),
      typed("One."),
      said("First."),
      typed("Two."),
      line("compacted", { message: "", replacement_history: [userItem("Two.")] }),
      said("Second."),
      event("thread_rolled_back", { num_turns: 1 }),
      typed("Other."),
    );
    expect(talk(session)).toEqual(["user: One.", "assistant: First.", "user: Other."]);
  });

  it("keeps calls that are no JSON, shell calls, and everything that nobody knows", () => {
    const session = read(
      header(),
      typed("Patch it."),
      item({ type: "custom_tool_call", call_id: "p1", name: "apply_patch", input: "*** Begin Patch" }),
      item({ type: "custom_tool_call_output", call_id: "p1", output: '{"output":"ok"}' }),
      item({ type: "local_shell_call", call_id: "s1", status: "completed", action: { type: "exec", command: ["ls"] } }),
      item({ type: "function_call_output", call_id: "s1", output: [{ type: "input_text", text: "a.txt" }] }),
      item({ type: "custom_tool_call", call_id: "p2", name: "apply_patch", input: "*** Begin Patch" }),
      item({ type: "custom_tool_call_output", call_id: "p2", output: [{ type: "output_text", text: "Done!" }] }),
      item({ type: "ghost_snapshot", ghost_commit: {} }),
      item({ type: "additional_tools", id: "at_1", role: "developer", tools: [{ type: "custom", name: "exec" }] }),
      item({
        type: "agent_message",
        author: "/root/a",
        recipient: "/root",
        content: [{ type: "input_text", text: "Patched." }],
      }),
      item({ type: "web_search_call", status: "completed", action: { query: "x" } }),
      line("world_state", { of: [1] }),
      event("patch_apply_end", { success: true }),
      { type: "novelty", deep: { of: [null] } },
    );
    expect(talk(session)).toEqual([
      "user: Patch it.",
      "assistant: ?p1",
      '=p1 toolResult: {"output":"ok"}',
      "assistant: ?s1",
      "=s1 toolResult: a.txt",
      "assistant: ?p2",
      "=p2 toolResult: Done!",
      "user: Patched.",
      "assistant: [web_search_call]",
    ]);
    const kept = session.records.filter(({ side }) => side).map(({ record }) => record["customType"]);
    const types = ["session_meta", "user_message", "ghost_snapshot", "additional_tools", "world_state"];
    types.push("patch_apply_end", "novelty");
    expect(kept).toEqual(types.map((type) => `codex.${type}`));
    expect(session.records.at(-1)?.record["data"]).toEqual({ deep: { of: [null] } });
  });

  it("keeps an item that is no message, whatever it is called, and reads the others", () => {
    const session = read(
      header(),
      typed("Go."),
      item({ type: "text" }),
      item({ type: "toolCall", id: 5 }),
      line("compacted", { message: "s", replacement_history: [item({ type: "text" })["payload"]] }),
      item({ type: "message", role: "assistant", content: [{ type: "output_text", text: "Done." }] }),
    );
    expect(talk(session).at(-1)).toBe("assistant: Done.");
    expect(session.records.every(({ record }) => findRecordProblem(record) === null)).toBe(true);
    expect(session.findings.map(({ code }) => code)).toEqual(["RECORD_INVALID", "RECORD_INVALID", "RECORD_INVALID"]);
  });

  it("of a sub-agent names the session that spawned it, by its own header and not by its parent's", () => {
    const parent = "019e03b1-6422-7510-b349-b4d4765a28a8";
    const spawn = { subagent: { thread_spawn: { parent_thread_id: parent, depth: 1 } } };
    const session = read(header({ source: spawn, forked_from_id: parent }), header({ id: parent, cwd: "/other" }));
    expect([session.reader.sessionId, session.reader.spawnedBy]).toEqual([sessionId, parent]);
    expect(session.reader.entry).toEqual({ cwd: "/w" });
  });

  it("is read without envelopes too, as versions before 0.44 wrote it", () => {
    const session = read(
      { id: sessionId, timestamp: "2025-08-01T10:00:00Z", instructions: null },
      { record_type: "state" },
      userItem("Hi"),
      { type: "message", role: "assistant", content: [{ type: "output_text", text: "Hello." }] },
    );
    expect(talk(session)).toEqual(["user: Hi", "assistant: Hello."]);
  });

  // The totals that the program notes last are what the whole session used.
  it.each(corpusFiles("codex", ".jsonl"))("has the program's own totals: %s", (file) => {
    const text = readFileSync(file, "utf8");
    const totals = text.split("\n").flatMap((one) => {
      const info = one.includes("total_token_usage") ? JSON.parse(one).payload.info : null;
      return info === null ? [] : [info.total_token_usage as Readonly<Record<string, number>>];
    });
    const { input = 0, cacheRead = 0, output: written = 0, reasoning = 0 } = usageOf(readUnits("codex", text, file));
    const counted = {
      input_tokens: input + cacheRead,
      cached_input_tokens: cacheRead,
      output_tokens: written,
      reasoning_output_tokens: reasoning,
      total_tokens: input + cacheRead + written,
    };
    expect(counted).toEqual(totals.at(-1) ?? Object.fromEntries(Object.keys(counted).map((name) => [name, 0])));
  });
});

describe("a conversation that the provider compacted", () => {
  it("goes back to its models as it is, and a finding says that no other reads it", () => {
    const item = { type: "compaction", encrypted_content: "gAAAAAB" };
    const kept = { type: "message", role: "user", content: [{ type: "input_text", text: "Old" }] };
    const session = readUnits(
      "codex",
      jsonLines(
        { timestamp: "2026-06-30T10:00:00.000Z", type: "turn_context", payload: { model: "gpt-5" } },
        { timestamp: "2026-06-30T10:00:00.000Z", type: "response_item", payload: kept },
        {
          timestamp: "2026-06-30T10:00:00.000Z",
          type: "compacted",
          payload: { message: "", replacement_history: [kept, item] },
        },
        { timestamp: "2026-06-30T10:00:00.000Z", type: "response_item", payload: kept },
      ),
    );
    const { messages, repairs } = renderOpenAiResponses(session.context);
    expect([messages[1], repairs]).toEqual([item, []]);
    expect(session.findings.map(({ code, line }) => [code, line])).toEqual([["SOURCE_UNREAD", 3]]);
  });
});
