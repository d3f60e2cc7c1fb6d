import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadSessionStore, resolveStorePath, updateLastRoute, updateSessionStore } from "@throughline/openclaw-compat";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { compatFixture, key as sessionKey, storePath } from "./compat-fixture.ts";

/** What OpenClaw's channels hand over with a message. */
const ctx = { Body: "hi", From: "slack:U1", To: "user:U1", ChatType: "group", SenderName: "Ann", Provider: "slack" };
const group = { key: "agent:main:slack:group:G1", channel: "slack", id: "G1", chatType: "group" };
const route = { channel: "slack", to: "user:U1", accountId: "default", threadId: undefined };

describe("calls as OpenClaw's own code makes them", () => {
  it("record a message with the group that it is from", async () => {
    await using fixture = compatFixture();
    const params = { storePath, sessionKey, ctx, groupResolution: group, createIfMissing: true };
    const entry = await fixture.sessions.recordSessionMetaFromInbound(params);
    expect(entry).toMatchObject({ groupId: "G1", channel: "slack", chatType: "group" });
    expect(await fixture.sessions.recordSessionMetaFromInbound({ ...params, groupResolution: null })).toEqual(entry);
  });

  it("store a route with its message, also for a key without a session", async () => {
    await using fixture = compatFixture();
    const { deliveryContext: delivered, ...entry } = await fixture.sessions.updateLastRoute({
      storePath,
      sessionKey,
      deliveryContext: route as { channel: string; to: string; accountId: string },
      ctx,
      groupResolution: group,
    });
    expect([delivered, entry]).toMatchObject([{ to: "user:U1" }, { groupId: "G1", origin: { from: "slack:U1" } }]);
    expect((await fixture.sessions.loadSessionStore(storePath))[sessionKey]?.sessionId).toBe(entry.sessionId);
  });

  it("name the session that pruning spares, the index of a mirror, and no key for a policy", async () => {
    await using fixture = compatFixture();
    await fixture.sessions.updateLastRoute({
      storePath: "/state/agents/ops/sessions/sessions.json",
      sessionKey: "agent:ops:main",
      channel: "slack",
      to: "U1",
    });
    await fixture.sessions.updateSessionStore(storePath, () => {}, {
      activeSessionKey: sessionKey,
      skipMaintenance: true,
    });
    const mirror = { storePath: "/state/agents/ops/sessions/sessions.json", sessionKey: "agent:ops:main", text: "x" };
    expect(await fixture.sessions.appendAssistantMessageToSessionTranscript(mirror)).toMatchObject({ ok: true });
    const sendPolicy = { default: "allow", rules: [{ action: "deny", match: { channel: "slack" } }] };
    const asked = { cfg: { session: { sendPolicy } }, chatType: "direct" };
    expect(fixture.sessions.resolveSendPolicy({ ...asked, channel: "slack" })).toBe("deny");
    expect(fixture.sessions.resolveSendPolicy({ ...asked, channel: "discord" })).toBe("allow");
  });
});

describe("a configured store path outside of a state directory", () => {
  let folder = "";
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "throughline-compat-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it("has sessions of its own, and a file of OpenClaw there is refused and stays", async () => {
    const path = resolveStorePath(join(folder, "{agentId}", "sessions.json"), { agentId: "main" });
    expect(Object.keys(await loadSessionStore(path))).toEqual([]);
    await updateLastRoute({ storePath: path, sessionKey, channel: "slack", to: "U1" });
    await updateSessionStore(path, (store) => void (store["agent:main:other"] = { sessionId: "s-other" }));
    expect(Object.keys(await loadSessionStore(path))).toEqual([sessionKey, "agent:main:other"]);
    expect(existsSync(path)).toBe(false);
    const theirs = join(folder, "theirs", "sessions.json");
    mkdirSync(join(folder, "theirs"));
    writeFileSync(theirs, "{}");
    await expect(loadSessionStore(theirs)).rejects.toMatchObject({ code: "INPUT_INVALID", outcome: "not-applied" });
  });
});
