import { describe, expect, it } from "vitest";
import { compatFixture, key, storePath } from "./compat-fixture.ts";

describe("paths by their documented names", () => {
  it("resolve as the document shows them", async () => {
    await using fixture = compatFixture();
    const { sessions } = fixture;
    expect(sessions.resolveDefaultSessionStorePath()).toBe("/state/agents/main/sessions/sessions.json");
    expect(sessions.resolveSessionTranscriptsDirForAgent("codex")).toBe("/state/agents/codex/sessions");
    expect(sessions.resolveSessionTranscriptPath("s1", "codex")).toBe("/state/agents/codex/sessions/s1.jsonl");
    expect(sessions.resolveSessionTranscriptPath("s1", "codex", 123)).toBe(
      "/state/agents/codex/sessions/s1-topic-123.jsonl",
    );
    expect(sessions.resolveStorePath("~/x/{agentId}/s.json", { agentId: "codex" })).toBe("/home/u/x/codex/s.json");
    expect(sessions.resolveStorePath()).toBe("/state/agents/main/sessions/sessions.json");
  });
});

describe("resolveSendPolicy", () => {
  it("reads the configuration as it stands and weighs it as told [C41]", async () => {
    await using fixture = compatFixture();
    const rules = [
      { match: { keyPrefix: "agent:main:discord" }, action: "allow" },
      { match: { channel: "discord" }, action: "deny" },
    ];
    const cfg = { session: { sendPolicy: { default: "deny", rules } } };
    expect(fixture.sessions.resolveSendPolicy({ cfg, sessionKey: key })).toBe("allow");
    expect(fixture.again({ sendPolicyMode: "deny-overrides" }).resolveSendPolicy({ cfg, sessionKey: key })).toBe(
      "deny",
    );
    expect(fixture.sessions.resolveSendPolicy({ cfg, sessionKey: "agent:main:x" })).toBe("deny");
    expect(
      fixture.sessions.resolveSendPolicy({ cfg, sessionKey: key, entry: { sessionId: "s", sendPolicy: "deny" } }),
    ).toBe("deny");
    expect(fixture.sessions.resolveSendPolicy({ sessionKey: key })).toBe("allow");
  });
});

describe("inbound messages", () => {
  it("are understood by the names OpenClaw's channels give their fields", async () => {
    await using fixture = compatFixture();
    const ctx = {
      Provider: "discord",
      ChatType: "group",
      From: "u1",
      To: "bot",
      MessageThreadId: 9,
      GroupSubject: "Team",
      AccountId: "a",
      Extra: 1,
    };
    const { sessions } = fixture;
    expect(
      await sessions.recordSessionMetaFromInbound({ storePath, sessionKey: key, ctx, createIfMissing: false }),
    ).toBeNull();
    const entry = await sessions.recordSessionMetaFromInbound({ storePath, sessionKey: key, ctx });
    expect(entry).toMatchObject({
      chatType: "group",
      subject: "Team",
      origin: { provider: "discord", from: "u1", to: "bot", accountId: "a", threadId: 9 },
    });
    const route = { storePath, sessionKey: key, deliveryContext: { channel: "discord", to: "C1" }, threadId: 7 };
    expect(await sessions.updateLastRoute(route)).toMatchObject({
      lastChannel: "discord",
      lastTo: "C1",
      lastThreadId: 7,
      deliveryContext: { channel: "discord", to: "C1", threadId: 7 },
    });
  });
});
