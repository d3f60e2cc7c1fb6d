import { describe, expect, it } from "vitest";
import {
  keptOnReset,
  loadEntryBlobs,
  openThread,
  resetSession,
  systemClock,
  systemRandom,
} from "@throughline/core/internal";
import { type SessionEntry, sessionRef, ThroughlineError } from "@throughline/core";
import { spawnSession } from "@throughline/tools/internal";
import { compatFixture, key, storeKinds, storePath } from "./compat-fixture.ts";

const ports = { clock: systemClock, random: systemRandom };
const ref = sessionRef({ key });

/** Every documented field but the session's id, and those we added. */
const fields =
  `updatedAt sessionFile spawnedBy sdkSessionId cliSessionIds claudeCliSessionId channel lastChannel lastTo lastAccountId
  lastThreadId deliveryContext chatType groupId subject groupChannel space displayName sendPolicy groupActivation
  groupActivationNeedsSystemIntro providerOverride modelOverride authProfileOverride authProfileOverrideSource
  authProfileOverrideCompactionCount execHost execSecurity execAsk execNode thinkingLevel verboseLevel reasoningLevel
  elevatedLevel responseUsage ttsAuto queueMode queueDebounceMs queueCap queueDrop inputTokens outputTokens totalTokens
  totalTokensFresh contextTokens modelProvider model compactionCount memoryFlushAt memoryFlushCompactionCount systemSent
  abortedLastRun lastHeartbeatText lastHeartbeatSentAt origin label skillsSnapshot systemPromptReport previousSessionIds
  spawnDepth spawned parentSessionKey blobsAside`.split(/\s+/);

const wrong: readonly (readonly [string, unknown])[] = [
  ["null", null],
  ["a number", -1.5],
  ["a text", "\u0000 ::: \u202e"],
  ["an empty text", ""],
  ["true", true],
  ["a list", [null, 1, "x", {}]],
  ["an object", { length: -1, toString: 1, channel: 7, key: {}, constructor: null }],
  [
    "an object with the name of every object's parent",
    JSON.parse('{"__proto__": {"polluted": true}, "hasOwnProperty": 1}'),
  ],
];

describe.each(wrong)("an entry in which every documented field is %s", (_, value) => {
  it("is read, patched, routed, mirrored to, threaded, spawned from and reset like any other", async () => {
    await using fixture = compatFixture("memory");
    const { sessions, store } = fixture;
    const entry = { sessionId: "s-1", ...Object.fromEntries(fields.map((field) => [field, value])) } as SessionEntry;
    await store.save(ref, entry, { ifRevision: null });
    expect(Object.keys((await sessions.loadSessionStore(storePath))[key] ?? {})).toContain("label");
    const patched = await sessions.updateSessionStoreEntry({ storePath, sessionKey: key, update: () => ({ note: 1 }) });
    expect(patched?.["note"]).toBe(1);
    expect(patched?.["queueMode"]).toEqual(JSON.parse(JSON.stringify(value)));
    const ctx = { provider: "discord", chatType: "group", label: "Ann", subject: "S" };
    const inbound = await sessions.recordSessionMetaFromInbound({ storePath, sessionKey: key, ctx });
    expect(inbound?.origin).toMatchObject({ provider: "discord", label: "Ann" });
    expect(Object.keys(inbound?.origin ?? {})).not.toContain("0");
    const routed = await sessions.updateLastRoute({ storePath, sessionKey: key, channel: "discord", to: "u" });
    expect(routed.deliveryContext).toMatchObject({ channel: "discord", to: "u" });
    expect(routed.lastTo).toBe("u");
    expect(Number.isFinite(routed.updatedAt)).toBe(true);
    const answer = sessions.resolveSendPolicy({ cfg: null, entry: routed, sessionKey: key });
    // What is neither allow nor deny was meant to say something.
    expect(answer).toBe(value === null ? "allow" : "deny");
    const mirror = await sessions.appendAssistantMessageToSessionTranscript({ sessionKey: key, text: "hello" });
    expect(mirror.ok).toBe(true);
    const thread = await openThread(store, ref, { ...ports, id: 1 });
    expect(thread.state.entry.parentSessionKey).toBe(key);
    await loadEntryBlobs(store, { ref, entry });
    const child = await spawnSession(store, ref, ports);
    expect(child.entry.spawnedBy).toBe(key);
    const fresh = await resetSession(store, ref, { random: systemRandom, keep: keptOnReset });
    expect(fresh.entry.previousSessionIds?.at(-1)).toBe("s-1");
    expect(fresh.entry.previousSessionIds?.every((id) => typeof id === "string")).toBe(true);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });
});

describe.each(storeKinds)("keys and patches that mean harm, over %s", (kind) => {
  it("a patch of __proto__ and constructor is a patch of fields with these names", async () => {
    await using fixture = compatFixture(kind);
    const { sessions } = fixture;
    await sessions.updateSessionStore(storePath, (store) => {
      store[key] = { sessionId: "s-1" };
    });
    const patch = JSON.parse(
      '{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}, "toString": 1}',
    );
    await sessions.updateSessionStoreEntry({ storePath, sessionKey: key, update: () => patch });
    const entry = (await sessions.loadSessionStore(storePath, { skipCache: true }))[key];
    expect(JSON.stringify(entry)).toContain(
      '"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"toString":1',
    );
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });

  it("keys named like members of objects, look-alikes and keys of 300 characters stay apart", async () => {
    await using fixture = compatFixture(kind);
    const { sessions, store } = fixture;
    const keys = [
      "__proto__",
      "constructor",
      `agent:main:${"k".repeat(300)}`,
      `agent:main:${"k".repeat(299)}K`,
      // Latin a, Cyrillic a, full width a, a with an accent in one and in two characters.
      "agent:main:a",
      "agent:main:\u0430",
      "agent:main:\uff41",
      "agent:main:\u00e1",
      "agent:main:a\u0301",
      "agent:main:A",
    ];
    for (const [index, each] of keys.entries())
      await store.save(sessionRef({ key: each, agentId: "main" }), { sessionId: `s-${index}` }, { ifRevision: null });
    const loaded = await sessions.loadSessionStore(storePath);
    expect(keys.map((each) => loaded[each]?.sessionId)).toEqual(keys.map((_, index) => `s-${index}`));
    expect(Object.keys(loaded)).toHaveLength(keys.length);
  });

  it("agents that differ by case alone are one too many", async () => {
    await using fixture = compatFixture(kind);
    const { store } = fixture;
    await store.save(sessionRef({ key: "agent:main:main" }), { sessionId: "s-1" }, { ifRevision: null });
    const other = sessionRef({ key: "agent:Main:main" });
    const answer = await store.save(other, { sessionId: "s-2" }, { ifRevision: null }).catch((error: unknown) => error);
    expect(ThroughlineError.isInstance(answer) ? answer.code : "saved").toBe("ID_CASE_COLLISION");
    expect((await store.list({ agentId: "Main" })).sessions).toEqual([]);
  });
});
