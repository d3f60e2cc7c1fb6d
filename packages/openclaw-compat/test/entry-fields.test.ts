import { describe, expect, it } from "vitest";
import { keptOnReset } from "@throughline/core/internal";
import { compatFixture, key, storeKinds, storePath, type StoreKind } from "./compat-fixture.ts";

/** Every documented field of an entry, by row of the document, with a value of its kind. */
const core = {
  sessionId: "0b83cd1e-54ce-4a39-9089-188d2669ead4",
  updatedAt: 1_790_000_000_123,
  sessionFile: "/else/where/s.jsonl",
  spawnedBy: "agent:main:main",
};
const sdk = { sdkSessionId: "sdk-1", cliSessionIds: { "claude-cli": "c-1", codex: "x-1" }, claudeCliSessionId: "c-1" };
const delivery = {
  channel: "discord",
  lastChannel: "discord",
  lastTo: "user:7",
  lastAccountId: "acct",
  lastThreadId: 42,
  deliveryContext: { channel: "discord", to: "user:7", accountId: "acct", threadId: 42 },
};
const group = {
  chatType: "group",
  groupId: "g-1",
  subject: "Release",
  groupChannel: "#release",
  space: "eng",
  displayName: "Release talk",
};
const policy = { sendPolicy: "deny" } as const;
const activation = { groupActivation: "mention", groupActivationNeedsSystemIntro: true };
const model = {
  providerOverride: "anthropic",
  modelOverride: "opus",
  authProfileOverride: "work",
  authProfileOverrideSource: "user",
  authProfileOverrideCompactionCount: 2,
};
const exec = { execHost: "gateway", execSecurity: "allowlist", execAsk: "on-miss", execNode: "node-1" };
const levels = {
  thinkingLevel: "high",
  verboseLevel: "on",
  reasoningLevel: "stream",
  elevatedLevel: "ask",
  responseUsage: "tokens",
  ttsAuto: "inbound",
};
const queue = { queueMode: "steer+backlog", queueDebounceMs: 500, queueCap: 20, queueDrop: "summarize" };
const tokens = {
  inputTokens: 10,
  outputTokens: 5,
  totalTokens: 1234,
  totalTokensFresh: false,
  contextTokens: 200_000,
  modelProvider: "anthropic",
  model: "claude-opus-5",
};
const compaction = { compactionCount: 3, memoryFlushAt: 1_790_000_000_000, memoryFlushCompactionCount: 2 };
const state = {
  systemSent: true,
  abortedLastRun: false,
  lastHeartbeatText: "all well",
  lastHeartbeatSentAt: 1_790_000_000_001,
};
const origin = {
  origin: {
    label: "Ann",
    provider: "discord",
    surface: "dm",
    chatType: "direct",
    from: "u7",
    to: "bot",
    accountId: "acct",
    threadId: "t-9",
  },
  label: "Mine",
};
const all = {
  ...core,
  ...sdk,
  ...delivery,
  ...group,
  ...policy,
  ...activation,
  ...model,
  ...exec,
  ...levels,
  ...queue,
  ...tokens,
  ...compaction,
  ...state,
  ...origin,
};

async function expectSurvival(kind: StoreKind, fields: Readonly<Record<string, unknown>>): Promise<void> {
  await using fixture = compatFixture(kind);
  const { sessions } = fixture;
  await sessions.updateSessionStore(storePath, (store) => {
    store[key] = { ...core, ...fields };
  });
  await sessions.updateSessionStoreEntry({ storePath, sessionKey: key, update: () => ({ note: "patched" }) });
  const loaded = (await sessions.loadSessionStore(storePath, { skipCache: true }))[key];
  const { updatedAt, note, ...kept } = loaded ?? { sessionId: "" };
  const { updatedAt: _old, ...rest } = core;
  expect(kept).toEqual({ ...rest, ...fields });
  expect([note, Number(updatedAt) >= core.updatedAt]).toEqual(["patched", true]);
}

describe.each(storeKinds)("an entry with every documented field, over %s", (kind) => {
  it("keeps identity, SDK, delivery, group and policy through a patch [ENT-01 ENT-02 ENT-03 ENT-04 ENT-05]", () =>
    expectSurvival(kind, { ...sdk, ...delivery, ...group, ...policy }));

  it("keeps activation, model, exec, levels and queue through a patch [ENT-06 ENT-07 ENT-08 ENT-09 ENT-10]", () =>
    expectSurvival(kind, { ...activation, ...model, ...exec, ...levels, ...queue }));

  it("keeps tokens, compaction, state and origin through a patch [ENT-11 ENT-13 ENT-14 ENT-17]", () =>
    expectSurvival(kind, { ...tokens, ...compaction, ...state, ...origin }));

  it("keeps 152 fields, known and unknown, in their order and byte for byte but for what was patched [ENT-20 STO-18]", async () => {
    await using fixture = compatFixture(kind);
    const { sessions } = fixture;
    const unknown = Array.from({ length: 152 - Object.keys(all).length }, (_, index) => [
      `field${index}`,
      [index, 1.5e-7, null, { "\u00e9": "\u2028", nested: [{ deep: -1 }] }, 'text \\ " \n'][index % 5],
    ]);
    const entry = { ...all, ...Object.fromEntries(unknown) } as typeof all & { readonly [field: string]: unknown };
    expect(Object.keys(entry)).toHaveLength(152);
    await sessions.updateSessionStore(storePath, (store) => {
      store[key] = entry as never;
    });
    const update = () => ({ verboseLevel: "off" });
    const patched = await sessions.updateSessionStoreEntry({ storePath, sessionKey: key, update });
    const loaded = (await sessions.loadSessionStore(storePath, { skipCache: true }))[key];
    const expected = { ...entry, verboseLevel: "off", updatedAt: patched?.updatedAt };
    expect(JSON.stringify(loaded)).toBe(JSON.stringify(expected));
  });

  it.each(["steer", "followup", "collect", "steer-backlog", "steer+backlog", "queue", "interrupt", "a mode of later"])(
    "keeps the queue mode %s through a patch and a reset [C53]",
    async (queueMode) => {
      await expectSurvival(kind, { queueMode });
      expect(keptOnReset({ sessionId: "s", queueMode })).toEqual({ queueMode });
    },
  );
});
