import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createSdkConversation } from "@throughline/adapter-claude-agent-sdk";
import { sessionRef } from "@throughline/core";
import type { SessionStore } from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "throughline-sdk-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const ref = sessionRef({ key: "agent:main:main" });

/** The SDK's own `query`, over a process that speaks the protocol of the program that it starts. */
function conversation(store: SessionStore): ReturnType<typeof createSdkConversation> {
  return createSdkConversation({
    store,
    ref,
    queryOptions: {
      pathToClaudeCodeExecutable: join(import.meta.dirname, "claude-code-process.ts"),
      executable: "node",
      env: { ...process.env, CLAUDE_CODE_SESSIONS: folder },
    },
  });
}

describe("the SDK as it is published", () => {
  it("resumes by the stored id and continues from the store when its session is gone", async () => {
    const store = createMemoryStore();
    expect(await conversation(store).send("my name is Ann")).toMatchObject({
      text: "You said 1 things.",
      sdkSessionId: "sdk-1",
    });
    expect(await conversation(store).send("again")).toMatchObject({
      text: "You said 2 things.",
      sdkSessionId: "sdk-1-2",
      isRecovered: false,
    });
    rmSync(join(folder, "sdk-1-2.json"));
    expect(await conversation(store).send("what is my name?")).toMatchObject({
      text: "You said 1 things.",
      sdkSessionId: "sdk-1",
      isRecovered: true,
    });
    expect((await store.load(ref))?.head.turn).toBeNull();
  });
});
