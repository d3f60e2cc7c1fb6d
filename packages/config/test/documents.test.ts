import { describe, expect, it } from "vitest";
import { sessionSettings } from "@throughline/config";
import { managementBlock, migrationBlock, persistenceBlock, policyBlock } from "./documents.ts";
import { resolve, written } from "./resolve.ts";

const openclawSessions = "/home/ada/.openclaw/agents/main/sessions";

describe("the documents' blocks as they stand", () => {
  it("takes the block of the page on session management", async () => {
    const config = await resolve({ file: managementBlock });
    expect(config.notes).toEqual([]);
    expect(await written({ file: managementBlock })).toEqual({
      store: "sqlite:/home/ada/.openclaw/sessions.db",
      "session.store": "sqlite",
      "session.storePath": "/home/ada/.openclaw/sessions.db",
      "session.checkpoint.enabled": true,
      // Configuring the server is choosing it: the page has it asked for summaries and for checkpoints.
      "session.checkpoint.model": "ollama",
      "session.checkpoint.tokenThresholdPercents": [25, 50, 75],
      "session.checkpoint.turnThreshold": 10,
      "session.checkpoint.minTokensForGen": 5000,
      "session.compaction.reserveTokens": 30_000,
      "session.compaction.preferCheckpoint": true,
      "session.compaction.retryIntervalSeconds": 60,
      "session.compaction.summaryModels": ["ollama"],
      "session.compaction.ollamaFailureThreshold": 3,
      "session.compaction.ollamaResetMinutes": 30,
      "session.compaction.ollama.url": "http://localhost:11434",
      "session.compaction.ollama.model": "qwen2.5:7b",
      "session.compaction.ollama.timeoutSeconds": 600,
      "session.compaction.ollama.contextTokens": 131_072,
    });
  });

  it("takes the first block of the specification, tells its other words, and never writes where it inherits from [CFG-02, C35]", async () => {
    const { settings, notes } = await resolve({ file: persistenceBlock, flags: { tools: "all" } });
    const values = Object.fromEntries(settings.map(({ key, value }) => [key, value]));
    expect(values).toMatchObject({
      "session.store": "jsonl",
      "session.storePath": openclawSessions,
      store: "jsonl:/home/ada/.throughline",
      "session.inherit.enabled": true,
      "session.inherit.source": openclawSessions,
      "session.defaultKey": "agent:main:main",
      "session.inherit.readKey": null,
      // The provider serves no model of the name that is printed.
      "session.checkpoint.model": "anthropic/claude-haiku-4-5",
      "session.checkpoint.fallbackToMain": true,
      "session.checkpoint.turnThreshold": 15,
      "session.checkpoint.minTokensForGen": 10_000,
      "session.memoryFlush.enabled": true,
      "session.compaction.reserveTokens": 4000,
    });
    expect((JSON.parse(persistenceBlock) as { session: { memoryFlush: object } }).session.memoryFlush).toMatchObject({
      thresholds: values["session.memoryFlush.thresholds"],
    });
    expect(notes.map(({ kind, key, line }) => [kind, key, line])).toEqual([
      ["alias", "session.storage", 3],
      ["alias", "session.path", 4],
      ["alias", "session.inherit", 5],
      ["repaired", "session.storePath", 4],
      ["repaired", "session.checkpoint.model", 10],
      ["repaired", "session.compaction.reserveTokens", 40],
    ]);
  });

  it("takes the second block of the specification", async () => {
    const config = await resolve({ file: migrationBlock });
    expect(await written({ file: migrationBlock })).toEqual({
      store: "sqlite:/home/ada/.openclaw/goclaw/sessions.db",
      "session.store": "sqlite",
      "session.storePath": "/home/ada/.openclaw/goclaw/sessions.db",
      "session.inherit.enabled": true,
      "session.inherit.source": openclawSessions,
      "session.inherit.format": "jsonl",
    });
    expect(sessionSettings(config).inherit).toEqual({
      enabled: true,
      source: openclawSessions,
      readKey: null,
      writeKey: null,
    });
    expect(config.notes.map(({ message }) => message)).toEqual(["session.path is read as session.storePath."]);
  });

  it("takes a send policy as it stands, without quotes", async () => {
    const { sendPolicy } = sessionSettings(await resolve({ file: policyBlock }));
    expect(sendPolicy).toEqual({
      mode: "first-match",
      default: "allow",
      rules: [
        { match: { channel: "discord", chatType: "group" }, action: "deny" },
        { match: { keyPrefix: "agent:main:slack" }, action: "allow" },
      ],
    });
  });

  it("takes each part of a block alone", async () => {
    const { session } = JSON.parse(managementBlock) as { session: { compaction: object; checkpoint: object } };
    for (const [area, block] of Object.entries({ compaction: session.compaction, checkpoint: session.checkpoint })) {
      for (const [key, value] of Object.entries(block)) {
        const file = { session: { [area]: { [key]: value as unknown } } };
        await expect(resolve({ file }), `${area}.${key}`).resolves.toMatchObject({ notes: [] });
      }
    }
  });

  it("reads keys of inheritance, and refuses two programs on one session [MIG-08, C35]", async () => {
    const inherit = {
      enabled: true,
      source: "~/old",
      format: "jsonl",
      readKey: "agent:main:main",
      writeKey: "goclaw:main:main",
    };
    const config = await resolve({ file: { session: { inherit } } });
    expect(sessionSettings(config).inherit).toEqual({
      enabled: true,
      source: "/home/ada/old",
      readKey: "agent:main:main",
      writeKey: "goclaw:main:main",
    });
    const one = { ...inherit, writeKey: "agent:main:main" };
    await expect(resolve({ file: { session: { inherit: one } } })).rejects.toThrow(
      /config\.json:8: session\.inherit\.writeKey is "agent:main:main": two programs would write one session/,
    );
    await expect(resolve({ file: { session: { inherit: { ...inherit, format: "sqlite" } } } })).rejects.toThrow(
      'session.inherit.format is "sqlite"; it must be one of jsonl.',
    );
    await expect(resolve({ file: { session: { inherit: { writeKey: "goclaw:main:main" } } } })).rejects.toThrow(
      /left out where session\.inherit\.readKey is not set/,
    );
  });
});
