import { once } from "node:events";
import { join } from "node:path";
import { createProviderSimulator } from "@throughline/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { assistant, objects, runChild, runHere, seed, start, temporaryDirectory, user } from "./harness.ts";
import type { Run } from "./harness.ts";

const key = "agent:main:cli:direct:work";
let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

describe.each(["sqlite", "jsonl"])("while a turn waits for its model, in a %s store", (kind) => {
  it("other processes read and write at once: no lock is held during the call", async () => {
    const store = `${kind}:${join(directory.path, kind === "sqlite" ? "sessions.db" : "store")}`;
    await seed(directory.path, [{ key, drafts: [user("before"), assistant("yes")] }], store);
    const delayMs = 600_000;
    await using provider = createProviderSimulator({ replies: [{ kind: "answer", content: "The reply.", delayMs }] });
    await provider.start();
    const environment = { ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: provider.url };
    const chat = ["chat", "--key", key, "--once", "slow", "--model", "anthropic/claude-opus-5", "--store", store];
    const turn = start(directory.path, chat, { environment });
    turn.stdin.end();
    const ended = once(turn, "close");
    await expect.poll(() => provider.requests.length).toBe(1);
    const other = async (args: readonly string[], stdin = ""): Promise<Run> => {
      const run = await runChild(directory.path, [...args, "--store", store, "--json", "--quiet"], { stdin });
      expect([args[0], run.code, run.stderr]).toEqual([args[0], 0, ""]);
      return run;
    };
    await Promise.all([
      other(["entry", key, "set", "label", "Work"]),
      other(["append", "agent:main:cli:direct:beside"], `${JSON.stringify(user("beside"))}\n`),
      other(["new", "Another"]),
    ]);
    const shown = await other(["show", key, "--role", "user"]);
    // The question is in the store before its answer.
    expect(shown.stdout).toContain('"slow"');
    expect(turn.exitCode).toBeNull();
    turn.kill("SIGINT");
    await ended;
    const after = await runHere(directory.path, ["show", key, "--store", store, "--json", "--quiet"]);
    const messages = objects(after.stdout).flatMap(({ type, record }) => (type === "message" ? [record] : []));
    expect(messages).toHaveLength(3);
    const entry = await runHere(directory.path, ["entry", key, "--store", store, "--json", "--quiet"]);
    expect(objects(entry.stdout)[0]?.["entry"]).toMatchObject({ label: "Work" });
  });
});
