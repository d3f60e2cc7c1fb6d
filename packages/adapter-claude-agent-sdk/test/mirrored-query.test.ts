import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { query } from "@anthropic-ai/claude-agent-sdk";
import { createClaudeSessionStore } from "@throughline/adapter-claude-agent-sdk";
import type { SessionStore } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { sessionId } from "./transcript.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "throughline-query-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A run of the SDK's own `query` on a machine of its own: only the store is shared. */
async function run(
  store: SessionStore,
  machine: string,
  options: Readonly<Record<string, unknown>>,
): Promise<unknown[]> {
  const messages: unknown[] = [];
  const stream = query({
    prompt: "Hello",
    options: {
      pathToClaudeCodeExecutable: join(import.meta.dirname, "mirrored-process.ts"),
      executable: "node",
      cwd: folder,
      env: { ...process.env, CLAUDE_CONFIG_DIR: join(folder, machine) },
      sessionStore: createClaudeSessionStore({ store }),
      ...options,
    },
  });
  for await (const message of stream) messages.push(message);
  return messages;
}

describe.each(["batched", "eager"] as const)("the SDK's query with a session store, %s", (sessionStoreFlush) => {
  it("mirrors a run, and resumes it on another machine", { tags: ["slow"] }, async () => {
    await using store = createSqliteStore({ path: join(folder, "s.db"), create: true });
    const first = await run(store, "one", { sessionStoreFlush });
    expect(first.at(-1)).toMatchObject({ result: "began, 0 lines, 0 agents" });
    expect(JSON.stringify(first)).not.toContain("mirror_error");
    const second = await run(store, "two", { sessionStoreFlush, resume: sessionId });
    expect(second.at(-1)).toMatchObject({ result: "resumed, 2 lines, 1 agents" });
    const third = await run(store, "three", { sessionStoreFlush, resume: sessionId });
    expect(third.at(-1)).toMatchObject({ result: "resumed, 4 lines, 2 agents" });
    const { sessions } = await store.list({ agentId: "main" });
    expect(sessions.filter(({ entry }) => entry.spawnedBy !== undefined)).toHaveLength(3);
  });
});
