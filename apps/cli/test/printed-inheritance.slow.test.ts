import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createProviderSimulator } from "@throughline/testing";
import { describe, expect, it } from "vitest";
import { objects, runHere, sentBody, temporaryDirectory } from "./harness.ts";
import type { Run } from "./harness.ts";

const sessionId = "7a0e870d-ac60-4042-85f2-99a6a0ca49fd";

/** Without comments or gaps: the block that the specification of the format prints. */
const printed = {
  session: {
    storage: "jsonl",
    path: "~/.openclaw/agents/main/sessions",
    inherit: true,
    defaultKey: "agent:main:main",
    checkpoint: {
      enabled: true,
      model: "anthropic/claude-3-haiku",
      fallbackToMain: true,
      tokenThresholdPercents: [25, 50, 75],
      turnThreshold: 15,
      minTokensForGen: 10000,
    },
    memoryFlush: {
      enabled: true,
      showInSystemPrompt: true,
      thresholds: [
        { percent: 50, prompt: "Context at 50%. Consider noting key decisions to memory.", injectAs: "system" },
        {
          percent: 75,
          prompt: "Context at 75%. Write important context to memory/YYYY-MM-DD.md now.",
          injectAs: "system",
        },
        {
          percent: 90,
          prompt:
            "[SYSTEM: pre-compaction memory flush]\nContext at 90%. Compaction imminent.\nStore durable memories now (use memory/YYYY-MM-DD.md).\nIf nothing to store, reply with NO_REPLY.",
          injectAs: "user",
        },
      ],
    },
    compaction: { reserveTokens: 4000, preferCheckpoint: true },
  },
};

const line = (record: object): string => `${JSON.stringify(record)}\n`;
const message = (id: string, parentId: string | null, role: string, text: string): string =>
  line({
    type: "message",
    id,
    parentId,
    timestamp: "2026-02-01T12:00:01.000Z",
    message: { role, content: [{ type: "text", text }], timestamp: 1_769_947_201_000 },
  });

describe("the configuration block that inherits a folder of OpenClaw's", () => {
  it("goes on with its session, asks the checkpoint model after 15 messages, and writes nothing there", async () => {
    const directory = temporaryDirectory();
    await using provider = createProviderSimulator({
      fallback: (request) =>
        sentBody(request)["tools"] === undefined
          ? '{"summary":"Much was said.","topics":["a","b","c"],"keyDecisions":[],"openQuestions":[]}'
          : "Yes.",
    });
    await provider.start();
    try {
      const home = join(directory.path, ".throughline");
      const source = join(directory.path, ".openclaw/agents/main/sessions");
      mkdirSync(source, { recursive: true });
      mkdirSync(home);
      writeFileSync(join(home, "config.json"), JSON.stringify(printed));
      writeFileSync(
        join(source, `${sessionId}.jsonl`),
        line({ type: "session", version: 3, id: sessionId, timestamp: "2026-02-01T12:00:00.000Z", cwd: "/work" }) +
          message("a1b2c3d4", null, "user", "My name is Ada.") +
          message("a1b2c3d5", "a1b2c3d4", "user", "word ".repeat(15_000)),
      );
      const entry = { sessionId, updatedAt: 1_769_962_601_713, compactionCount: 2, totalTokens: 156_000 };
      writeFileSync(join(source, "sessions.json"), JSON.stringify({ "agent:main:main": entry }));
      const hashes = (): readonly string[] =>
        readdirSync(source).map(
          (name) =>
            `${name} ${createHash("sha256")
              .update(readFileSync(join(source, name)))
              .digest("hex")}`,
        );
      const before = hashes();
      const environment = {
        THROUGHLINE_HOME: home,
        ANTHROPIC_API_KEY: "sk-test",
        ANTHROPIC_BASE_URL: provider.url,
      };
      const run = (...args: readonly string[]): Promise<Run> => runHere(directory.path, args, { environment });
      for (let turn = 1; turn <= 15; turn++) {
        const { code } = await run("chat", "--once", `turn ${turn}`, "--model", "anthropic/claude-opus-5");
        expect(code).toBe(0);
      }
      expect(hashes()).toEqual(before);
      const [first] = provider.requests;
      expect(JSON.stringify(sentBody(first)["messages"]).slice(0, 200)).toContain("My name is Ada.");
      const others = provider.requests
        .map((request) => sentBody(request)["model"])
        .filter((name) => name !== "claude-opus-5");
      // The model the block names is no longer served; the one that took its place is asked once.
      expect(others).toEqual([expect.stringMatching(/^claude-.*haiku/)]);
      const listed = await run("checkpoints", "agent:main:main", "--json", "--quiet");
      expect(objects(listed.stdout)[0]).toMatchObject({ summary: "Much was said.", messageCountAtCheckpoint: 32 });
      const config = objects((await run("config", "--json", "--quiet")).stdout);
      const valueOf = (key: string): unknown => config.find((setting) => setting["key"] === key)?.["value"];
      expect(valueOf("session.store")).toBe("jsonl");
      expect(valueOf("session.checkpoint.turnThreshold")).toBe(15);
      expect(valueOf("session.checkpoint.minTokensForGen")).toBe(10_000);
    } finally {
      directory.remove();
    }
  });
});
