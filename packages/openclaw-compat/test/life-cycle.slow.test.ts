import { describe, expect, it } from "vitest";
import { endSession, sessionRef, type SessionRef, type SessionState, type SessionStore } from "@throughline/core";
import {
  keptOnReset,
  openThread,
  resetSession,
  systemClock,
  systemRandom,
  throughlineDraft,
  updateEntry,
} from "@throughline/core/internal";
import { recordInbound, updateRoute } from "../src/inbound-message.ts";
import { spawnSession } from "@throughline/tools/internal";
import { neverReset } from "@throughline/policy/internal";
import { planReset, planRetention, readResetPolicy } from "@throughline/policy";
import { compatFixture } from "./compat-fixture.ts";

const group = sessionRef({ key: "agent:main:discord:group:42" });
const main = sessionRef({ key: "agent:main:main" });
const ports = { clock: systemClock, random: systemRandom };
const dayMs = 86_400_000;

async function say(store: SessionStore, ref: SessionRef, ...texts: readonly string[]): Promise<void> {
  const drafts = texts.map((content, index) => ({
    type: "message",
    message: { role: index % 2 === 0 ? "user" : "assistant", content },
  }));
  await store.append(ref, drafts);
}

async function said(store: SessionStore, ref: SessionRef): Promise<readonly unknown[]> {
  const texts: unknown[] = [];
  for await (const page of store.read(ref))
    for (const { record } of page.records)
      if (record.type === "message") texts.push((record["message"] as { readonly content: unknown }).content);
  return texts;
}

async function loaded(store: SessionStore, ref: SessionRef): Promise<SessionState> {
  const state = await store.load(ref);
  if (state === null) throw new Error(`There is no ${ref.key}.`);
  return state;
}

/** First message, thread, topic, spawn, configuration, reset, restore, delete, expiry, prune: one session's whole life. */
async function live(store: SessionStore): Promise<readonly string[]> {
  const story: string[] = [];

  // The first message creates the session; the one after describes it and does not.
  const inbound = { provider: "discord", channel: "discord", chatType: "dm", from: "u7", label: "Ann", groupId: "g" };
  const first = await recordInbound(store, group, { ...inbound, chatType: "group", subject: "Release" }, ports);
  expect(first?.entry).toMatchObject({ chatType: "group", subject: "Release", groupId: "g" });
  expect((await recordInbound(store, group, { ...inbound, chatType: "group" }, ports))?.sessionId).toBe(
    first?.sessionId,
  );
  expect(
    await recordInbound(store, sessionRef({ key: "agent:main:x" }), inbound, { ...ports, createIfMissing: false }),
  ).toBeNull();
  await updateRoute(store, group, { channel: "discord", to: "g:42", accountId: "a" }, { clock: ports.clock });
  await say(store, group, "hello", "hello, Ann");
  story.push("created");

  // A thread and a topic below it, of which one begins with what was said.
  const thread = await openThread(store, group, { ...ports, id: "t-1" });
  const topic = await openThread(store, group, { ...ports, id: 7, kind: "topic", fork: true });
  expect([thread.isNew, topic.isNew]).toEqual([true, true]);
  expect((await openThread(store, group, { ...ports, id: "t-1" })).isNew).toBe(false);
  await say(store, thread.state.ref, "in the thread");
  await say(store, topic.state.ref, "in the topic");
  await say(store, group, "in the group");
  expect(await said(store, group)).toEqual(["hello", "hello, Ann", "in the group"]);
  expect(await said(store, thread.state.ref)).toEqual(["in the thread"]);
  expect(await said(store, topic.state.ref)).toEqual(["hello", "hello, Ann", "in the topic"]);
  expect((await loaded(store, thread.state.ref)).entry).toMatchObject({
    parentSessionKey: group.key,
    subject: "Release",
    lastTo: "g:42",
    lastThreadId: "t-1",
    deliveryContext: { channel: "discord", to: "g:42", accountId: "a", threadId: "t-1" },
  });
  expect((await loaded(store, topic.state.ref)).entry["lastThreadId"]).toBe(7);
  story.push("threads");

  const child = await spawnSession(store, group, ports);
  expect(child.entry).toMatchObject({ spawnedBy: group.key, spawnDepth: 1 });
  story.push("spawned");

  // Configured, counted, connected; then reset: what people set up stays, what was counted goes, the old one is there.
  await updateEntry(store, group, (entry) => ({
    ...entry,
    label: "Release room",
    sendPolicy: "deny",
    model: "opus",
    thinkingLevel: "high",
    queueMode: "collect",
    sdkSessionId: "sdk-1",
    totalTokens: 5000,
    compactionCount: 2,
    memoryFlushAt: 5,
    memoryFlushCompactionCount: 1,
    systemSent: true,
  }));
  const before = await loaded(store, group);
  const fresh = await resetSession(store, group, { random: systemRandom, keep: keptOnReset });
  expect(fresh.entry).toMatchObject({
    label: "Release room",
    sendPolicy: "deny",
    model: "opus",
    thinkingLevel: "high",
    queueMode: "collect",
    origin: before.entry.origin,
    deliveryContext: before.entry.deliveryContext,
    lastTo: "g:42",
    previousSessionIds: [before.sessionId],
  });
  const gone = ["sdkSessionId", "totalTokens", "compactionCount", "memoryFlushAt", "systemSent"];
  expect(Object.keys(fresh.entry).filter((field) => gone.includes(field))).toEqual([]);
  expect(await said(store, group)).toEqual([]);
  expect(await said(store, { ...group, archiveId: before.sessionId })).toEqual(["hello", "hello, Ann", "in the group"]);
  story.push("reset");

  // A run is not deleted from under its agent; the main session never; a deleted one is archived, listed and restored.
  await say(store, group, "after the reset");
  const turn = { action: "open", turnId: "t", owner: "agent", leaseUntilMs: Date.now() + 60_000, fence: 1 } as const;
  await store.append(group, [throughlineDraft("turn", { turnId: "t", state: "open" })], { turn });
  await expect(endSession(store, group, { timeoutMs: 0 })).rejects.toMatchObject({ code: "SESSION_BUSY" });
  const ending = endSession(store, group, { pollIntervalMs: 10 });
  await systemClock.sleep(60);
  await store.append(group, [], { entry: {}, turn: { action: "close", fence: 1 } });
  await ending;
  expect(await store.load(group)).toBeNull();
  const archived = await store.list({ agentId: "main", state: "archived", keyPrefix: group.key, sort: "key" });
  expect(
    archived.sessions
      .filter(({ ref }) => ref.key === group.key)
      .map(({ sessionId }) => sessionId)
      .toSorted(),
  ).toEqual([before.sessionId, fresh.sessionId].toSorted());
  await expect(say(store, { ...group, archiveId: before.sessionId }, "x")).rejects.toMatchObject({
    code: "SESSION_ARCHIVED",
  });
  await store.move({ ...group, archiveId: fresh.sessionId }, { kind: "restore" });
  expect(await said(store, group)).toEqual(["after the reset"]);
  await store.save(main, { sessionId: systemRandom.uuid() }, { ifRevision: null });
  await expect(endSession(store, main)).rejects.toMatchObject({ code: "SESSION_PROTECTED" });
  story.push("deleted and restored");

  // Nothing ends by itself. Told to, it is a plan, and what is protected stays.
  const { updatedAtMs } = await loaded(store, group);
  const question = { key: group.key, lastActivityMs: updatedAtMs, nowMs: updatedAtMs + 400 * dayMs, timeZone: "UTC" };
  expect(planReset({ policy: neverReset, ...question })).toMatchObject({ isDue: false, dueAtMs: null });
  const idle = readResetPolicy({ reset: { mode: "idle", idleMinutes: 60 } });
  expect(planReset({ policy: idle, ...question })).toMatchObject({ isDue: true, reason: "idle" });
  const { sessions } = await store.list({ agentId: "main", state: "any", sort: "key" });
  const known = sessions.map(({ ref, sessionId, updatedAtMs: atMs }) => ({
    key: ref.key,
    sessionId,
    state: ref.archiveId === undefined ? ("active" as const) : ("archived" as const),
    updatedAtMs: atMs,
    archivedAtMs: ref.archiveId === undefined ? null : atMs,
    sizeBytes: null,
    isProtected: ref.archiveId === undefined && (ref.key === main.key || ref.key === group.key),
  }));
  const { steps, spared } = planRetention(known, { olderThanMs: 30 * dayMs }, question.nowMs);
  for (const { action, key, sessionId } of steps) {
    const ref = sessionRef({ key });
    if (action === "archive") await store.move(ref, { kind: "archive" });
    else await store.remove({ ...ref, archiveId: sessionId }, { purge: true });
  }
  expect(spared.map(({ key }) => key)).toContain(main.key);
  const left = await store.list({ agentId: "main", state: "any", sort: "key" });
  expect(left.sessions.map(({ ref }) => [ref.key, ref.archiveId !== undefined]).toSorted()).toEqual(
    [
      [main.key, false],
      [group.key, false],
      [thread.state.ref.key, true],
      [topic.state.ref.key, true],
      [child.ref.key, true],
    ].toSorted(),
  );
  story.push("pruned");
  return story;
}

describe("the life of a session", () => {
  it("is the same on JSON Lines and SQLite, from the first message to the prune [STO-07 STO-09 STO-11 TST-09 C16]", async () => {
    const stories: (readonly string[])[] = [];
    for (const kind of ["jsonl", "sqlite"] as const) {
      await using fixture = compatFixture(kind);
      stories.push(await live(fixture.store));
    }
    const [jsonl, sqlite] = stories;
    expect(jsonl).toEqual(["created", "threads", "spawned", "reset", "deleted and restored", "pruned"]);
    expect(sqlite).toEqual(jsonl);
  });
});
