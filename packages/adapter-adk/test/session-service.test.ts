import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createAdkSessionService, type AdkSessionServiceOptions } from "@throughline/adapter-adk";
import { redactRecords, type SessionStore } from "@throughline/core";
import { systemClock, updateEntry } from "@throughline/core/internal";
import { readResetPolicy, readSendPolicy } from "@throughline/policy";
import { createMemoryStore } from "@throughline/store-memory";
import { createSqliteStore } from "@throughline/store-sqlite";
import { aroundCalls } from "@throughline/test-kit";
import { describeWrongValues } from "@throughline/test-kit/options";
import { afterAll, describe, expect, it } from "vitest";

type Fields = Record<string, unknown>;
interface Session {
  readonly id: string;
  readonly appName: string;
  readonly userId: string;
  readonly state: Fields;
  readonly events: Fields[];
  readonly lastUpdateTime: number;
}

/** As the ADK's own, which `lab/adk-sessions.ts` runs: its packages are not among those of the workspace. */
abstract class BaseService {
  abstract createSession(request: Fields): Promise<Session>;
  abstract getSession(request: Fields): Promise<Session | undefined>;
  abstract listSessions(request: Fields): Promise<{ readonly sessions: Session[]; readonly totalItems: number }>;
  abstract deleteSession(request: Fields): Promise<void>;
  appendEvent({ session, event }: { readonly session: Session; readonly event: Fields }): Promise<Fields> {
    session.events.push(event);
    return Promise.resolve(event);
  }
}

const serviceOf = (store: SessionStore, options: Partial<AdkSessionServiceOptions> = {}) =>
  createAdkSessionService(BaseService, { store, ...options });

const key = { appName: "app", userId: "u", sessionId: "s" };
const actions = { stateDelta: {}, artifactDelta: {}, requestedAuthConfigs: {}, requestedToolConfirmations: {} };
const frame = { invocationId: "e-1", actions, longRunningToolIds: [], timestamp: 1795795237762 };
const call = { functionCall: { name: "clock", args: {}, id: "adk-1" } };
const response = { functionResponse: { id: "adk-1", name: "clock", response: { time: "9:00" } } };

/** Events as the ADK's runner made them. */
const events: readonly Fields[] = [
  { ...frame, author: "user", id: "2ksjLjcD", content: { role: "user", parts: [{ text: "What time is it?" }] } },
  {
    ...frame,
    author: "teller",
    id: "OVFEY7Mi",
    content: {
      role: "model",
      parts: [
        { text: "Let me see.", thought: true },
        { ...call, thoughtSignature: "c2ln" },
      ],
    },
    usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 3, totalTokenCount: 13 },
  },
  {
    ...frame,
    author: "teller",
    id: "VLZOzjmR",
    content: { role: "user", parts: [response] },
    actions: { ...actions, stateDelta: { asked: 1, "user:language": "de", "app:motd": "hi" } },
  },
  { ...frame, author: "teller", id: "EuflwLgk", content: { role: "model", parts: [{ text: "Nine." }] } },
  { ...frame, author: "teller", id: "CompaCte", isCompacted: true, startTime: 1, endTime: 2, compactedContent: "…" },
  { ...frame, author: "teller", id: "StateOnl", actions: { ...actions, stateDelta: { mood: "good" } } },
  { ...frame, author: "odd", id: "", content: { parts: [{ executableCode: { code: "1" } }] } },
];

const folder = mkdtempSync(join(tmpdir(), "throughline-adk-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.each([
  ["memory", () => createMemoryStore()],
  ["sqlite", () => createSqliteStore({ path: join(folder, "s.db"), create: true })],
] as const)("the session service, over %s", (_kind, open) => {
  it("gives back events and state as they came, in a service of another process too", async () => {
    await using store = open();
    const service = serviceOf(store);
    const session = await service.createSession({ ...key, state: { a: 1, "user:b": 2, "temp:c": 3 } });
    expect(session.state).toEqual({ a: 1, "user:b": 2 });
    for (const event of events) await service.appendEvent({ session, event });
    await service.appendEvent({ session, event: { ...events[0], id: "partial1", partial: true } });
    for (const one of [service, serviceOf(store)]) {
      const read = await one.getSession(key);
      expect(read?.events).toStrictEqual(events);
      expect(read?.state).toEqual({
        a: 1,
        asked: 1,
        mood: "good",
        "app:motd": "hi",
        "user:b": 2,
        "user:language": "de",
      });
    }
    expect((await service.getSession({ ...key, config: { numRecentEvents: 2 } }))?.events).toEqual(events.slice(-2));
    expect((await service.listSessions({ appName: "app" })).sessions).toMatchObject([
      { id: "s", userId: "u", events: [] },
    ]);
    await service.deleteSession(key);
    await service.deleteSession(key);
    expect(await service.getSession(key)).toBeUndefined();
  });
});

describe("the session service", () => {
  it("refuses a message of the user where the agent may not answer, before the runner asks a model", async () => {
    const store = createMemoryStore();
    const service = serviceOf(store);
    const session = await service.createSession(key);
    const [asked, replied] = events as [Fields, Fields];
    await service.appendEvent({ session, event: asked });
    // Denied while the agent answers: the answer is kept.
    const ref = service.sessionOf(key);
    await updateEntry(store, ref, (entry) => ({ ...entry, sendPolicy: "deny" }));
    const again = (await service.getSession(key)) as Session;
    await service.appendEvent({ session: again, event: replied });
    const denied = service.appendEvent({ session: again, event: { ...asked, id: "later" } });
    await expect(denied).rejects.toMatchObject({ code: "SEND_DENIED", outcome: "not-applied" });
    expect((await service.getSession(key))?.events).toEqual([asked, replied]);
    await updateEntry(store, ref, ({ sendPolicy: _own, ...entry }) => entry);
    const denying = serviceOf(store, { sendPolicy: readSendPolicy({ default: "deny" }) });
    const read = (await denying.getSession(key)) as Session;
    await expect(denying.appendEvent({ session: read, event: asked })).rejects.toThrow("may not answer");
  });

  it("begins in a new session with a message after the idle minutes, and empties the object of the run", async () => {
    let nowMs = frame.timestamp;
    const clock = { nowMs: () => nowMs, sleep: systemClock.sleep };
    const store = createMemoryStore({ clock });
    const reset = readResetPolicy({ reset: { mode: "idle", idleMinutes: 30 } });
    const service = serviceOf(store, { clock, reset });
    const session = await service.createSession({ ...key, state: { mood: "bad", "user:name": "Ann" } });
    const said = (id: string): Fields => ({ ...events[0], id, timestamp: nowMs });
    await service.appendEvent({ session, event: said("one") });
    await service.appendEvent({ session, event: { ...events[1], id: "two", timestamp: nowMs } });
    const { sessionId: before } = (await store.load(service.sessionOf(key))) ?? {};
    nowMs += 40 * 60_000;
    const run = (await service.getSession(key)) as Session;
    expect(run.events).toHaveLength(2);
    // An answer to a call belongs to the run that asked.
    const answer = { ...said("three"), content: { role: "user", parts: [response] } };
    await service.appendEvent({ session: run, event: answer });
    expect(run.events).toHaveLength(3);
    nowMs += 40 * 60_000;
    const later = (await service.getSession(key)) as Session;
    await service.appendEvent({ session: later, event: said("four") });
    expect(later).toMatchObject({ events: [{ id: "four" }], state: { "user:name": "Ann" } });
    expect(later.state).not.toHaveProperty("mood");
    await service.appendEvent({ session: later, event: { ...events[3], id: "five" } });
    expect((await service.getSession(key))?.events.map(({ id }) => id)).toEqual(["four", "five"]);
    expect((await service.listSessions({ appName: "app" })).totalItems).toBe(1);
    const archived = await store.load({ ...service.sessionOf(key), archiveId: before ?? "" });
    expect(archived).toMatchObject({ archived: true });
  });

  it("refuses a second writer, and stores an event once", async () => {
    const store = createMemoryStore();
    const [one, two] = [serviceOf(store), serviceOf(store)];
    const first = await one.createSession(key);
    const [a, b, c] = events as [Fields, Fields, Fields];
    await one.appendEvent({ session: first, event: a });
    const second = (await two.getSession(key)) as Session;
    await two.appendEvent({ session: second, event: b });
    await expect(one.appendEvent({ session: first, event: c })).rejects.toMatchObject({ code: "SESSION_BUSY" });
    expect(first.events).toHaveLength(1);
    await two.appendEvent({ session: second, event: b });
    expect((await one.getSession(key))?.events).toEqual([a, b]);
    const ref = one.sessionOf(key);
    expect((await store.load(ref))?.head.lastSeq).toBe(2);
  });

  it("takes the events of a session that the program copied, unless that is older than the log", async () => {
    const store = createMemoryStore();
    const service = serviceOf(store);
    const session = await service.createSession(key);
    await service.appendEvent({ session, event: events[0] as Fields });
    const copy = structuredClone(session);
    await service.appendEvent({ session: copy, event: events[3] as Fields });
    const old = { ...structuredClone(session), lastUpdateTime: 1 };
    await expect(service.appendEvent({ session: old, event: events[6] as Fields })).rejects.toMatchObject({
      code: "SESSION_BUSY",
    });
  });

  it("replaces an event with a known id, and hands out nothing of one that was redacted", async () => {
    const store = createMemoryStore();
    const service = serviceOf(store);
    const session = await service.createSession(key);
    for (const event of events.slice(0, 4)) await service.appendEvent({ session, event });
    const parts = [{ functionResponse: { ...response.functionResponse, response: { time: "10:00" } } }];
    const changed = { ...events[2], content: { role: "user", parts } };
    await service.appendEvent({ session, event: changed });
    expect((await service.getSession(key))?.events).toEqual([events[0], events[1], changed, events[3]]);
    await redactRecords(store, service.sessionOf(key), ["2ksjLjcD"], { reason: "private" });
    const read = await serviceOf(store).getSession(key);
    expect(read?.events.slice(1)).toEqual([events[1], changed, events[3]]);
    expect(read?.events).toHaveLength(4);
    expect(JSON.stringify(read)).not.toContain("What time is it?");
  });

  it("tells app and user what a process that was killed has set, and nothing over what was set later", async () => {
    const store = createMemoryStore();
    const clock = { ...systemClock, nowMs: () => time };
    let time = Date.UTC(2026, 0, 1);
    let isKilled = false;
    const killed = serviceOf(
      aroundCalls(store, ({ name, run }) => {
        if (isKilled && name === "save") throw new Error("killed");
        return run();
      }),
      { clock },
    );
    const setting = (id: string, stateDelta: Fields): Fields => ({
      ...frame,
      id,
      author: "user",
      actions: { stateDelta },
    });
    const session = await killed.createSession(key);
    isKilled = true;
    await expect(
      killed.appendEvent({ session, event: setting("one", { "app:motd": "old", "user:name": "Ada" }) }),
    ).rejects.toThrow("killed");
    // The program lives and sets more before the first is told.
    await expect(killed.appendEvent({ session, event: setting("two", { "app:next": 1 }) })).rejects.toThrow("killed");
    const service = serviceOf(store, { clock });
    time += 1000;
    const other = await service.createSession({ ...key, sessionId: "other" });
    await service.appendEvent({ session: other, event: setting("three", { "app:motd": "new" }) });
    time += 1000;
    const state = { "app:motd": "new", "app:next": 1, "user:name": "Ada" };
    expect((await service.getSession(key))?.state).toEqual(state);
    expect((await service.getSession({ ...key, sessionId: "other" }))?.state).toEqual(state);
    expect((await store.load(service.sessionOf(key)))?.entry).not.toHaveProperty("adkPending");
  });

  it("tells app and user the state of a session whose creation was cut off", async () => {
    const store = createMemoryStore();
    let saves = 0;
    const killed = serviceOf(
      aroundCalls(store, ({ name, run }) => {
        if (name === "save" && ++saves > 1) throw new Error("killed");
        return run();
      }),
    );
    await expect(killed.createSession({ ...key, state: { a: 1, "app:b": 2, "user:c": 3 } })).rejects.toThrow("killed");
    const service = serviceOf(store);
    const session = (await service.getSession(key)) as Session;
    expect(session.state).toEqual({ a: 1, "app:b": 2, "user:c": 3 });
    // A copy of it is as new as the log.
    await service.appendEvent({ session: structuredClone(session), event: events[0] as Fields });
  });

  it("has the ADK's words for what its callers look for", async () => {
    const service = serviceOf(createMemoryStore());
    const session = await service.createSession(key);
    await expect(service.createSession(key)).rejects.toMatchObject({
      message: "Session with id s already exists.",
      cause: { code: "SESSION_EXISTS" },
    });
    const gone = { ...session, id: "gone" };
    await expect(service.appendEvent({ session: gone, event: events[0] as Fields })).rejects.toMatchObject({
      message: "Session gone not found for appendEvent",
      cause: { code: "SESSION_NOT_FOUND" },
    });
    const circular: Fields = { ...events[0] };
    circular["content"] = { parts: [circular] };
    await expect(service.appendEvent({ session, event: circular })).rejects.toMatchObject({ code: "INPUT_INVALID" });
    await expect(service.getSession({ ...key, userId: 5 })).rejects.toMatchObject({ code: "INPUT_INVALID" });
    for (const wrong of [{ limit: -1 }, { offset: 0.5 }, { page: 0, limit: 5 }])
      await expect(service.listSessions({ appName: "app", ...wrong })).rejects.toMatchObject({ code: "INPUT_INVALID" });
  });
});

describeWrongValues([
  {
    name: "createAdkSessionService",
    needed: { store: createMemoryStore() },
    wrong: {
      store: [{}, 5],
      agentId: ["", 5],
      namespace: [5],
      refOf: [{}],
      agentName: [""],
      onLoss: [{}],
      purge: ["yes"],
      clock: [{}],
      random: [{}],
    },
    call: (options) => createAdkSessionService(BaseService, options as unknown as AdkSessionServiceOptions),
  },
]);
