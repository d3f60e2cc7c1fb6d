import { type PartialReply, type RecordDraft, type SessionStore, userMessage } from "@throughline/core";
import { systemClock, systemRandom } from "@throughline/core/internal";
import { createHistory } from "@throughline/history";
import { createMemoryStore } from "@throughline/store-memory";
import { openTurn, type Session } from "@throughline/session";
import { leaseTurn } from "../src/lease-turn.ts";
import { describe, expect, it } from "vitest";
import { createFixture, key, outline } from "./session-fixture.ts";

const ref = { namespace: "", agentId: "main", key };
const shown = "The harbor lies in the south of the town. ".repeat(3);

/** Is the owner of turns whose process is gone. */
const owners = { self: "me", stateOf: (owner: string) => (owner === "dead" ? "gone" : "unknown") } as const;

/** Holds a session whose process died while a reply was written. */
async function died(
  isExpired: boolean,
  { text = shown, before = [], partial = {} }: Left = {},
): Promise<ReturnType<typeof createFixture>> {
  const store = createMemoryStore();
  const fixture = createFixture({ store, owners });
  await store.save(ref, { sessionId: "s1" }, { ifRevision: null });
  await store.append(ref, [
    { type: "message", id: "u0", message: { role: "user", content: "Hello" } },
    { type: "message", id: "a0", message: { role: "assistant", content: "Hi.", stopReason: "stop" } },
  ]);
  const leaseUntilMs = Date.now() + (isExpired ? -1 : 60_000);
  const mark = { turnId: "t1", state: "open", owner: "dead", leaseUntilMs, fence: 1 };
  const drafts: readonly RecordDraft[] = [
    { type: "custom", customType: "throughline.turn", data: mark, side: true } as RecordDraft,
    { type: "message", id: "u1", message: { role: "user", content: "Where is the harbor?" } },
    ...before,
  ];
  await store.append(ref, drafts, { turn: { action: "open", turnId: "t1", owner: "dead", leaseUntilMs, fence: 1 } });
  const head = (await store.load(ref))?.head;
  await store.partials?.write(ref, {
    v: 1,
    sessionId: "s1",
    turnId: "t1",
    fence: 1,
    step: 1,
    attempt: 0,
    afterSeq: head?.lastSeq ?? 0,
    provider: "anthropic",
    api: null,
    model: "claude-sonnet-4-5",
    text,
    updatedMs: 1,
    ...partial,
  });
  return fixture;
}

interface Left {
  readonly text?: string;
  readonly before?: readonly RecordDraft[];
  readonly partial?: Partial<PartialReply>;
}

async function recoveredIn({ records }: ReturnType<typeof createFixture>): Promise<readonly unknown[]> {
  return (await records()).flatMap(({ record }) => {
    const message = record["message"] as { readonly recovered?: boolean } | undefined;
    return message?.recovered === true ? [message] : [];
  });
}

const draft = [userMessage("And now?")];

/** Each way to begin a turn after one whose process died. */
const ways: Readonly<Record<string, (store: SessionStore, session: Session) => Promise<unknown>>> = {
  runTurn: (_, session) => session.runTurn("And now?"),
  "runTurn with a key": (_, session) => session.runTurn("And now?", { idempotencyKey: "k1" }),
  resume: (_, session) => session.resume(),
  regenerate: (_, session) => session.regenerate(),
  edit: (_, session) => session.edit("u0", "Good morning"),
  rewind: (_, session) => session.rewind("a0"),
  openTurn: async (store) => (await openTurn(store, key, { drafts: draft })).close(),
  "openTurn with a key": async (store) => (await openTurn(store, key, { drafts: draft, idempotencyKey: "k1" })).close(),
  leaseTurn: (store) =>
    leaseTurn(store, ref, {
      owner: "other",
      leaseMs: 30_000,
      drafts: draft,
      clock: systemClock,
      random: systemRandom,
      expect: { head: "u1" },
    }),
};

describe.each([true, false])("a turn after one that died while it wrote, lease over: %s", (isExpired) => {
  // What opens turns without `createSessions` asks the system which processes are gone.
  const bySystem = ["openTurn", "openTurn with a key", "leaseTurn"];
  it.each(Object.keys(ways).filter((way) => isExpired || !bySystem.includes(way)))(
    "%s stores what was shown, once and before the end of that turn",
    async (way) => {
      const fixture = await died(isExpired);
      const session = await fixture.sessions.open(key);
      expect(session.partialReply?.text).toBe(shown);
      await ways[way]?.(fixture.store, session);
      expect(await recoveredIn(fixture)).toEqual([
        {
          role: "assistant",
          content: [{ type: "text", text: shown }],
          provider: "anthropic",
          model: "claude-sonnet-4-5",
          stopReason: "aborted",
          recovered: true,
        },
      ]);
      const records = await fixture.records();
      const at = records.findIndex(({ record }) => (record["message"] as { recovered?: true })?.recovered === true);
      expect(outline(records.slice(at, at + 2))).toEqual(["assistant:aborted", "turn:interrupted"]);
      // It belongs to the branch that it was written on.
      expect(records[at]?.parentId).toBe("u1");
      expect(await fixture.store.partials?.read(ref)).toBeNull();
    },
  );
});

describe("what was shown of a reply", () => {
  it("is told of by an event, and is in no later request", async () => {
    const { sessions, events, model } = await died(true);
    const session = await sessions.open(key);
    await session.runTurn("And now?");
    expect(events.filter(({ name }) => name === "turn.recovered")).toEqual([
      expect.objectContaining({ recoveredTurnId: "t1", characters: shown.length }),
    ]);
    expect(session.partialReply).toBeNull();
    expect(JSON.stringify(model.requests)).not.toContain("harbor lies");
  });

  it("is recovered by one of two processes that begin at once", async () => {
    const fixture = await died(false);
    const { store } = fixture;
    const other = createFixture({ store, owners: { ...owners, self: "other" } });
    const sessions = [await fixture.sessions.open(key), await other.sessions.open(key)];
    await Promise.all(sessions.map((session, at) => session.runTurn(`Message ${at}`, { whenBusy: "queue" })));
    expect(await recoveredIn(fixture)).toHaveLength(1);
    expect(outline(await fixture.records()).filter((word) => word === "turn:interrupted")).toHaveLength(1);
  });

  it.each<[string, Left]>([
    ["blank text", { text: " \n" }],
    ["a reply that the log has", { partial: { afterSeq: 2, text: "Hi" }, before: [reply("Hi there.")] }],
  ])("is not recovered with %s", async (_what, left) => {
    const fixture = await died(true, left);
    await (await fixture.sessions.open(key)).runTurn("And now?");
    expect(await recoveredIn(fixture)).toEqual([]);
  });

  it("passes the redaction hook once more", async () => {
    const { store } = await died(true);
    const redactBeforeAppend = (given: RecordDraft): RecordDraft =>
      JSON.parse(JSON.stringify(given).replaceAll("harbor", "[place]")) as RecordDraft;
    const fixture = createFixture({ store, owners, redactBeforeAppend });
    await (await fixture.sessions.open(key)).runTurn("And now?");
    expect(JSON.stringify(await recoveredIn(fixture))).toContain("The [place] lies");
  });
});

function reply(text: string): RecordDraft {
  return { type: "message", message: { role: "assistant", content: [{ type: "text", text }], stopReason: "stop" } };
}

describe("resume with continueReply", () => {
  it.each([true, false])("asks for the rest of the reply, lease over: %s", async (isExpired) => {
    const { sessions, model, records } = await died(isExpired);
    const session = await sessions.open(key);
    model.push("Take the tram.");
    await session.resume({ continueReply: true });
    const [request] = model.requests;
    expect(request?.messages.slice(-2)).toEqual([
      { role: "assistant", content: [{ type: "text", text: shown.trimEnd() }] },
      { role: "user", content: [{ type: "text", text: expect.stringMatching(/^Your last reply was cut off\./) }] },
    ]);
    const last = (await records()).map(({ record }) => record["message"] as { source?: string } | undefined);
    expect(last.filter((message) => message?.source === "continue")).toHaveLength(1);
    const history = createHistory("anthropic");
    history.append(await records());
    expect(JSON.stringify(history.render().messages)).toContain("harbor lies");
  });

  it("asks again when the beginning is shorter than 80 characters, and without the option", async () => {
    for (const [text, options] of [
      ["x".repeat(79), { continueReply: true }],
      [shown, {}],
    ] as const) {
      const { sessions, model } = await died(true, { text });
      await (await sessions.open(key)).resume(options);
      expect(JSON.stringify(model.requests.at(-1)?.messages.at(-1))).toContain("Where is the harbor?");
    }
  });

  it("continues a reply that a person canceled, and asks again after a call of a tool", async () => {
    const canceled = createFixture();
    canceled.model.push({ text: shown, hangs: true });
    const session = await canceled.sessions.open(key);
    const cancel = new AbortController();
    await session.runTurn("Hello", { signal: cancel.signal, onDelta: () => cancel.abort() });
    await session.resume({ continueReply: true });
    expect(JSON.stringify(canceled.model.requests.at(-1)?.messages.at(-1))).toContain("cut off");
    const calling = createFixture();
    const call = { id: "c1", name: "echo", arguments: { text: "a" } };
    calling.model.push({ text: shown, calls: [call], hangs: true });
    const other = await calling.sessions.open(key);
    const stop = new AbortController();
    await other.runTurn("Hello", { signal: stop.signal, onDelta: () => stop.abort() });
    await other.resume({ continueReply: true });
    expect(JSON.stringify(calling.model.requests.at(-1)?.messages)).not.toContain("cut off.");
  });
});
