import { readdirSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { assistant, objects, runHere, seed, temporaryDirectory, user } from "./harness.ts";

let directory = temporaryDirectory();
beforeEach(async () => {
  directory = temporaryDirectory();
  await seed(directory.path, [
    { key: "agent:main:a", entry: { title: "Harbour" }, drafts: [user("lights"), answered("claude-opus-4-5")] },
    {
      key: "agent:work:b",
      drafts: [user("quay"), answered("house-model"), answered("house-model", { cost: { total: 0.25 } })],
    },
  ]);
});
afterEach(() => directory.remove());

function answered(model: string, more: object = {}): ReturnType<typeof assistant> {
  const draft = assistant("lit");
  const usage = { input: 1000, output: 100, cacheRead: 10_000, cacheWrite: 0, ...more };
  const message = { ...(draft["message"] as object), provider: "anthropic", model, usage };
  return { ...draft, timestamp: "2026-05-07T10:00:00.000Z", message };
}

async function usage(
  ...args: readonly string[]
): Promise<{ readonly rows: readonly string[]; readonly stderr: string }> {
  const { code, stdout, stderr } = await runHere(directory.path, ["usage", ...args]);
  expect([code, stderr]).toEqual([0, expect.any(String)]);
  return { rows: stdout.trim().split("\n"), stderr };
}

describe("usage", () => {
  it("prints sums by name, a total, and what they lack", async () => {
    const { rows, stderr } = await usage("--by", "model");
    expect(rows).toEqual([
      "house-model\t2\t2,000\t20,000\t0\t200\t0\t0 s\t$0.25+",
      "claude-opus-4-5\t1\t1,000\t10,000\t0\t100\t0\t0 s\t$0.01",
      "total\t3\t3,000\t30,000\t0\t300\t0\t0 s\t$0.26+",
    ]);
    expect(stderr).toContain("Prices of 20");
    expect(stderr).toContain("$0.25 of it is the cost that programs stated themselves.");
    expect(stderr).toContain("The cost lacks 1 call of house-model");
  });

  it("counts every agent, or the one that is named", async () => {
    expect((await usage("--by", "agent,session")).rows.map((row) => row.split("\t").slice(0, 3))).toEqual([
      ["work", "b", "2"],
      ["main", "Harbour", "1"],
      ["total", "", "3"],
    ]);
    expect((await usage("--by", "session", "--agent", "main")).rows).toHaveLength(2);
    expect((await usage("--program", "codex")).stderr).toContain("No calls of models.");
    expect((await usage("--since", "2026-05-08")).rows).toHaveLength(1);
    expect((await usage("--model", "house")).rows.at(-1)).toMatch(/^total\t2\t/);
  });

  it("takes the prices of the configuration", async () => {
    const prices = { "house-*": { input: 10, output: 20, cacheRead: 1 } };
    writeFileSync(join(directory.path, "config.json"), JSON.stringify({ prices }));
    const { rows, stderr } = await usage("--by", "model", "--model", "house");
    expect(rows[0]).toMatch(/\t\$0\.27$/);
    expect(stderr).not.toContain("lacks");
  });

  it.each([
    ["--by", "hour"],
    ["--by", "day,day"],
    ["--by", "day,model,agent"],
    ["--by", "day", "--blocks"],
  ])("refuses %s %s", async (...args) => {
    const { code, stderr } = await runHere(directory.path, ["usage", ...args]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("throughline usage")]);
  });

  it("keeps its sums in a closed file, which reindex removes", async () => {
    await usage();
    const folder = join(directory.path, "usage");
    const [file = ""] = readdirSync(folder);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(statSync(join(folder, file)).mode & 0o777).toBe(0o600);
    writeFileSync(join(folder, file), "no database at all, but long enough to be read as one".repeat(100));
    expect((await usage()).rows.at(-1), "a damaged file is made again").toMatch(/^total\t3\t/);
    await runHere(directory.path, ["reindex"]);
    expect(readdirSync(folder)).toEqual([]);
    expect((await usage()).rows.at(-1)).toMatch(/^total\t3\t/);
  });

  it("prints one line from what Claude Code passes, and none of its cost in the sums", async () => {
    const stdin = JSON.stringify({ model: { display_name: "Opus" }, cost: { total_cost_usd: 1.5 } });
    const { stdout } = await runHere(directory.path, ["usage", "--statusline"], { stdin });
    expect(stdout).toBe("Opus | $1.50 session | $0.00 today\n");
    const { stdout: json } = await runHere(directory.path, ["usage", "--statusline", "--json"], { stdin: "no JSON" });
    expect(objects(json)).toMatchObject([{ model: null, sessionUsd: null, today: { calls: 0 }, block: null }]);
  });

  it("prints its line without the store while nothing was written to it", async () => {
    const block = async (): Promise<unknown> => {
      const { code, stdout } = await runHere(directory.path, ["usage", "--statusline", "--json"]);
      return [code, (objects(stdout)[0]?.["block"] as { readonly calls: number } | null)?.calls];
    };
    const timestamp = new Date().toISOString();
    const path = join(directory.path, "sessions.db");
    const key = "agent:main:now";
    await seed(directory.path, [{ key, drafts: [{ ...answered("claude-opus-4-5"), timestamp }] }]);
    expect(await block()).toEqual([0, 1]);
    await seed(directory.path, [{ key: "agent:main:then", drafts: [{ ...answered("claude-opus-4-5"), timestamp }] }]);
    expect(await block()).toEqual([0, 2]);
    expect(await block()).toEqual([0, 2]);
    writeFileSync(path, "no database");
    utimesSync(path, 1, 1);
    expect(await block()).toEqual([0, 2]);
  });

  it("shows windows of five hours", async () => {
    const { stdout } = await runHere(directory.path, ["usage", "--blocks", "--json"]);
    const startMs = Date.parse("2026-05-07T10:00:00Z");
    expect(objects(stdout)[0]).toMatchObject({ kind: "usageBlock", startMs, endMs: startMs + 5 * 3_600_000, calls: 3 });
  });
});
