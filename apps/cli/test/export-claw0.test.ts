import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { RecordDraft } from "@throughline/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { normalMessages, rebuildHistory } from "../../../packages/transfer/test/rebuild-history.ts";
import { assistant, objects, runHere, temporaryDirectory, user, type Run } from "./harness.ts";

const key = "agent:main:cli:direct:work";
const noKeys = { ANTHROPIC_API_KEY: "", OPENAI_API_KEY: "", OLLAMA_HOST: "" };
let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

function here(args: readonly string[], stdin?: string): Promise<Run> {
  return runHere(directory.path, args, { environment: noKeys, ...(stdin === undefined ? {} : { stdin }) });
}

async function appended(drafts: readonly RecordDraft[]): Promise<void> {
  const run = await here(["append", key], drafts.map((draft) => `${JSON.stringify(draft)}\n`).join(""));
  expect([run.code, run.stderr]).toEqual([0, ""]);
}

function reply(...content: readonly object[]): RecordDraft {
  return { type: "message", message: { role: "assistant", content } };
}

function call(id: string): object {
  return { type: "toolCall", id, name: "read", arguments: { path: `${id}.txt` } };
}

function result(id: string, content: string, isError = false): RecordDraft {
  return { type: "message", message: { role: "toolResult", toolCallId: id, toolName: "read", content, isError } };
}

/** What Anthropic's API would be sent for a session, as far as the session goes. */
async function messagesOf(store: readonly string[] = []): Promise<readonly { role: string; content: unknown }[]> {
  const run = await here(["context", key, "--provider", "anthropic", "--json", ...store]);
  expect(run.code).toBe(0);
  const { messages, repairs } = objects(run.stdout)[0] as {
    messages: { role: string; content: unknown }[];
    repairs: { rule: string }[];
  };
  return repairs.some(({ rule }) => rule === "continuation-added") ? messages.slice(0, -1) : messages;
}

const flat = (): string => readFileSync(join(directory.path, "flat.jsonl"), "utf8");

describe("export --to claw0", () => {
  it("gives claw0's own reader and a new import the context of the session [C07, REC-02, REC-03, REC-05, REC-06]", async () => {
    await appended([
      user("Read both."),
      reply({ type: "text", text: "Reading." }, call("a"), call("b")),
      result("b", "two"),
      result("a", "no such file", true),
      assistant("One of them is there."),
      user("And c?"),
      reply(call("c")),
    ]);
    const wanted = await messagesOf();
    const run = await here(["export", key, "--to", "claw0", "-o", "flat.jsonl", "--json"]);
    expect(run.code).toBe(0);
    expect(objects(run.stdout)[0]).toMatchObject({ kind: "export", key, format: "claw0", records: 7 });
    const lines = objects(flat());
    expect(lines.map(({ type }) => type)).toEqual([
      "session",
      "user",
      "assistant",
      "tool_use",
      "tool_use",
      "tool_result",
      "tool_result",
      "assistant",
      "user",
      "tool_use",
      "tool_result",
    ]);
    expect(lines[1]).toEqual({ type: "user", content: "Read both.", ts: expect.any(Number) });
    expect(lines[3]).toEqual({
      type: "tool_use",
      tool_use_id: "a",
      name: "read",
      input: { path: "a.txt" },
      ts: expect.any(Number),
    });
    expect(normalMessages(rebuildHistory(flat()))).toEqual(normalMessages(wanted));
    // The call that was never answered: claw0 would send a request that the API refuses.
    expect(run.stderr).toContain("1 repair for Anthropic's API: result-synthesized");
    const other = ["--store", `sqlite:${join(directory.path, "other.db")}`];
    const imported = await here(["import", "flat.jsonl", "--from", "claw0", "--json", ...other]);
    expect(objects(imported.stdout)[0]).toMatchObject({ sources: [{ format: "claw0", key, state: "imported" }] });
    expect(await messagesOf(other)).toEqual(wanted);
  });

  it("puts the summary in claw0's words first, and reports by reason what the file leaves out [C07]", async () => {
    const exchanges = Array.from({ length: 12 }, (_, index) => [
      user(`Look after quay ${index}, and never paint it red. `.repeat(10)),
      assistant(`Quay ${index} is looked after in src/quay-${index}.ts. `.repeat(12)),
    ]).flat();
    await appended(exchanges);
    expect((await here(["checkpoint", key, "--model", "offline"])).code).toBe(0);
    const compacted = await here(["compact", key, "--model", "offline", "--json"]);
    const removed = Number(objects(compacted.stdout)[0]?.["messagesRemoved"]);
    await appended([user("A wrong turn.")]);
    const shown = objects((await here(["show", key, "--all", "--json"])).stdout);
    const before = String(shown.at(-2)?.["parentId"]);
    expect((await here(["rewind", key, "--to", before, "--yes"])).code).toBe(0);
    await appended([user("Which quay comes next?")]);
    const wanted = await messagesOf();
    const run = await here(["export", key, "--to", "claw0", "-o", "flat.jsonl"]);
    expect(run.code).toBe(0);
    const [first, second] = rebuildHistory(flat());
    expect(String(first?.content)).toMatch(/^\[Previous conversation summary\]\n/);
    expect(second).toEqual({
      role: "assistant",
      content: [{ type: "text", text: "Understood, I have the context." }],
    });
    expect(normalMessages(rebuildHistory(flat()))).toEqual(normalMessages(wanted));
    expect(flat()).not.toContain("A wrong turn.");
    expect(run.stderr).toContain(`left-out: ${removed} records: the summary stands for them`);
    expect(run.stderr).toContain("left-out: 1 record: on another branch");
    expect(run.stderr).toMatch(/left-out: \d+ records?: no message \(a call, a checkpoint, a label, a setting\)/);
  });

  it("writes claw0's folders with --all, which an import reads, and refuses a format that it does not know [C05, LAY-01]", async () => {
    await appended([user("Hello."), assistant("Hi.")]);
    expect((await here(["rename", key, "--label", "my-project"])).code).toBe(0);
    const run = await here(["export", "--all", "--to", "claw0", "-o", "workspace/.sessions"]);
    expect(run.code).toBe(0);
    const index = JSON.parse(
      readFileSync(join(directory.path, "workspace/.sessions/agents/main/sessions.json"), "utf8"),
    ) as Record<string, object>;
    expect(Object.values(index)).toEqual([
      { label: "my-project", created_at: expect.any(Number), last_active: expect.any(Number), message_count: 2 },
    ]);
    const other = ["--store", `sqlite:${join(directory.path, "other.db")}`];
    const imported = await here(["import", "workspace", "--json", ...other]);
    expect(objects(imported.stdout)[0]).toMatchObject({ sources: [{ format: "claw0", key, records: 3 }] });
    expect(await messagesOf(other)).toEqual(await messagesOf());
    const unknown = await here(["export", key, "--to", "flat"]);
    expect([unknown.code, unknown.stdout]).toEqual([2, ""]);
    expect(unknown.stderr).toContain(
      "It must be one of html, markdown, jsonl, openclaw, pi, claw0, otlp-json, claude-code, codex, gemini",
    );
  });
});
