import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runHere, seed, temporaryDirectory, user } from "./harness.ts";

const key = "agent:main:cli:direct:work";
let directory = temporaryDirectory();
beforeEach(() => (directory = temporaryDirectory()));
afterEach(() => directory.remove());

describe("lines typed in chat", () => {
  it.each([
    ["redact", [key, "1", "--yes"]],
    ["delete", [key, "--purge", "--yes"]],
    ["reset", [key, "--purge", "--yes"]],
    ["prune", ["--max-bytes", "1", "--grace", "0s", "--yes"]],
  ])("go with what they may repeat: %s", async (command, rest) => {
    await seed(directory.path, [{ key, drafts: [user("my passport"), user("kept")] }]);
    if (command === "prune") {
      await seed(directory.path, [{ key: `${key}:newest`, drafts: [user("newest")] }]);
      await runHere(directory.path, ["delete", key]);
    }
    const home = (await runHere(directory.path, ["config", "--json"])).stdout;
    const [, path = directory.path] = /"key":"home","value":"([^"]*)"/.exec(home) ?? [];
    mkdirSync(path, { recursive: true });
    const [mine, others] = ["main", "other"].map((agent) => join(path, `chat-history-${agent}.jsonl`)) as [
      string,
      string,
    ];
    for (const file of [mine, others]) writeFileSync(file, `"my passport"\n`);
    const { code, stderr } = await runHere(directory.path, [command, ...rest]);
    expect(code).toBe(0);
    expect([existsSync(mine), existsSync(others)]).toEqual([false, true]);
    expect(stderr).toContain(mine);
  });
});
