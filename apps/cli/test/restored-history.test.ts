import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { objects, runHere, temporaryDirectory, type Run } from "./harness.ts";

let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

const key = "agent:main:cli:direct:long";
const window = ["--window", "40000"];
const words = "what about the plan and the schedule of the team? ".repeat(20);

const run = (args: readonly string[], stdin?: string): Promise<Run> =>
  runHere(directory.path, args, stdin === undefined ? {} : { stdin });
const chat = (...args: readonly string[]): Promise<Run> =>
  run(["chat", "--key", key, "--model", "offline", ...window, "--once", ...args]);

/** A hundred turns of about 520 tokens each. */
async function appendLongHistory(): Promise<void> {
  const drafts = Array.from({ length: 100 }, (_, at) => [
    { type: "message", message: { role: "user", content: `Question ${at}: ${words}` } },
    { type: "message", message: { role: "assistant", content: [{ type: "text", text: `Answer ${at}: ${words}` }] } },
  ]).flat();
  const { code } = await run(["append", key], drafts.map((draft) => JSON.stringify(draft)).join("\n"));
  expect(code).toBe(0);
}

async function summaries(): Promise<number> {
  const records = objects((await run(["show", key, "--raw", "--json"])).stdout);
  return records.filter(({ type }) => type === "compaction").length;
}

describe("a history that is longer than the window", () => {
  it("is cut in chat with session.turn.restore cut: no summary, one note, and every command says so", async () => {
    writeFileSync(join(directory.path, "config.json"), JSON.stringify({ session: { turn: { restore: "cut" } } }));
    await appendLongHistory();
    const { code, stderr } = await chat("hello");
    expect(code).toBe(0);
    expect(stderr).toMatch(
      /The history is longer than the window of 40,000 tokens\. Requests begin at record \d+, without \d+ older messages; `throughline show \S+ --all` prints them/,
    );
    expect(stderr).not.toContain("compact");
    expect(await summaries()).toBe(0);
    const [call] = objects((await run(["explain", key, "--json"])).stdout);
    const { fromSeq } = (call?.["cut"] ?? {}) as { readonly fromSeq?: number };
    expect(fromSeq).toBeGreaterThan(1);
    // At the beginning of a turn.
    const shown = objects((await run(["show", key, "--raw", "--all", "--json"])).stdout);
    const first = shown.find(({ seq }) => seq === fromSeq) as { record?: { message?: unknown } } | undefined;
    expect(first?.record?.message ?? first).toMatchObject({ role: "user" });
    expect((await run(["explain", key])).stdout).toContain(`cut         before record #${fromSeq}`);
    const context = objects((await run(["context", key, ...window, "--json"])).stdout)[0] ?? {};
    expect(context["omitted"]).toEqual([{ fromSeq: 1, toSeq: (fromSeq ?? 0) - 1, reason: "window" }]);
    expect((context["gauge"] as { readonly percent: number }).percent).toBeLessThan(100);
    expect(context["recordsInContext"]).toBe(200 - (fromSeq ?? 0) + 1 + 2);
    expect((await run(["show", key, "--all"])).stdout).toContain("Question 0:");
    // The next process begins its requests at the same message, and says nothing of it again.
    const again = await chat("hello again");
    expect(again.stderr).not.toContain("longer than the window");
    const calls = objects((await run(["explain", key, "--json"])).stdout).filter(({ kind }) => kind === "call");
    expect(calls.map(({ cut }) => cut)).toEqual([call?.["cut"], call?.["cut"]]);
  });

  it("is summarized before the first answer without the setting", async () => {
    await appendLongHistory();
    const { code, stderr } = await chat("hello");
    expect(code).toBe(0);
    expect(stderr).toContain("Summarized the older messages");
    expect(await summaries()).toBe(1);
    const [call] = objects((await run(["explain", key, "--json"])).stdout);
    expect(call).toMatchObject({ cut: null });
    expect(call?.["summaryId"]).not.toBeNull();
  });

  it("refuses another word for the setting and names the two there are", async () => {
    writeFileSync(join(directory.path, "config.json"), JSON.stringify({ session: { turn: { restore: "cutt" } } }));
    const { code, stderr } = await run(["config", "--check"]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/restore.*compact.*cut/s);
  });
});
