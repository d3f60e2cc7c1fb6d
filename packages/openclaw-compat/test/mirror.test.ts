import { describe, expect, it } from "vitest";
import { openSession, sessionRef, type SessionStore } from "@throughline/core";
import { recordInbound } from "../src/inbound-message.ts";
import { systemClock, systemRandom } from "@throughline/core/internal";
import { compatFixture, key, steppedClock, storeKinds } from "./compat-fixture.ts";

const ref = sessionRef({ key });
const said = (role: string, text: string) => ({
  type: "message",
  message: { role, content: [{ type: "text", text }] },
});

async function messages(store: SessionStore, of = ref): Promise<unknown[]> {
  const pages = await Array.fromAsync(store.read(of));
  return pages.flatMap(({ records }) => records.map(({ record }) => record["message"]));
}

describe.each(storeKinds)("mirroring a delivered message over %s", (kind) => {
  it("puts text and names of media into the transcript as the document names it", async () => {
    await using fixture = compatFixture(kind);
    await openSession(fixture.store, ref, { random: systemRandom, entry: { sessionId: "s1" } });
    const mediaUrls = ["https://example.com/a%20b.png?x=1", "https://example.com/"];
    const result = await fixture.sessions.appendAssistantMessageToSessionTranscript({
      sessionKey: key,
      text: "Sent",
      mediaUrls,
    });
    expect(result).toMatchObject({ ok: true, sessionFile: "/state/agents/main/sessions/s1.jsonl", isDuplicate: false });
    expect(await messages(fixture.store)).toMatchObject([
      {
        role: "assistant",
        content: [
          { type: "text", text: "Sent" },
          { type: "text", text: "a b.png, media" },
        ],
        provider: "openclaw",
        model: "delivery-mirror",
        usage: { input: 0, output: 0, totalTokens: 0 },
        stopReason: "stop",
      },
    ]);
  });

  it("says why not, and changes nothing, for no key, no session, no text or another session", async () => {
    await using fixture = compatFixture(kind);
    const mirror = fixture.sessions.appendAssistantMessageToSessionTranscript;
    expect(await mirror({ sessionKey: " ", text: "x" })).toMatchObject({ ok: false, code: "missing-key" });
    expect(await mirror({ sessionKey: key, text: "x" })).toMatchObject({ ok: false, code: "unknown-session" });
    await openSession(fixture.store, ref, { random: systemRandom, entry: { sessionId: "s1" } });
    expect(await mirror({ sessionKey: key, text: " ", mediaUrls: [] })).toMatchObject({ ok: false, code: "empty" });
    expect(await mirror({ sessionKey: key, text: "x", expectedSessionId: "s0" })).toMatchObject({
      ok: false,
      code: "session-rebound",
    });
    expect(await messages(fixture.store)).toEqual([]);
  });

  it("neither doubles a reply that is stored already nor mirrors a key twice", async () => {
    await using fixture = compatFixture(kind);
    await openSession(fixture.store, ref, { random: systemRandom });
    await fixture.store.append(ref, [said("user", "hi"), said("assistant", "Hello  there\n")]);
    const mirror = fixture.sessions.appendAssistantMessageToSessionTranscript;
    expect(await mirror({ sessionKey: key, text: "Hello there" })).toMatchObject({ ok: true, isDuplicate: true });
    const first = await mirror({ sessionKey: key, text: "News", idempotencyKey: "n1" });
    await fixture.store.append(ref, [said("user", "thanks"), said("assistant", "welcome")]);
    // Time passes between the two: the message would carry another one.
    const second = await mirror({ sessionKey: key, text: "News", idempotencyKey: "n1" });
    expect([first, second]).toMatchObject([
      { ok: true, isDuplicate: false },
      { ok: true, isDuplicate: true },
    ]);
    expect(await mirror({ sessionKey: key, text: "Other", idempotencyKey: "n1" })).toMatchObject({
      ok: false,
      code: "blocked",
    });
    expect(await messages(fixture.store)).toHaveLength(5);
    // The same words after somebody else spoke are another message.
    await fixture.store.append(ref, [said("user", "again?")]);
    expect(await mirror({ sessionKey: key, text: "welcome" })).toMatchObject({ ok: true, isDuplicate: false });
  });

  it("recognizes a retry by its key when the reply was stored by its turn", async () => {
    await using fixture = compatFixture(kind);
    await openSession(fixture.store, ref, { random: systemRandom });
    const { records } = await fixture.store.append(ref, [said("user", "hi"), said("assistant", "Hello")]);
    const mirror = fixture.sessions.appendAssistantMessageToSessionTranscript;
    const delivered = { sessionKey: key, text: "Hello", idempotencyKey: "h1" };
    const found = { ok: true, isDuplicate: true, messageId: records[1]?.id };
    expect([await mirror(delivered), await mirror(delivered)]).toMatchObject([found, found]);
    await fixture.store.append(ref, [said("user", "thanks")]);
    expect(await mirror(delivered)).toMatchObject(found);
    expect(await mirror({ ...delivered, text: "Other" })).toMatchObject({ ok: false, code: "blocked" });
    expect(await messages(fixture.store)).toHaveLength(3);
    // Without a key the same words after another message are a new message.
    expect(await mirror({ sessionKey: key, text: "Hello" })).toMatchObject({ ok: true, isDuplicate: false });
  });

  it("finds a reply that it mirrored itself, and one that has the key of another message", async () => {
    await using fixture = compatFixture(kind);
    await openSession(fixture.store, ref, { random: systemRandom });
    const mirror = fixture.sessions.appendAssistantMessageToSessionTranscript;
    const first = await mirror({ sessionKey: key, text: "News", idempotencyKey: "n1" });
    expect(first).toMatchObject({ ok: true, isDuplicate: false });
    const again = { ...first, isDuplicate: true };
    expect(await mirror({ sessionKey: key, text: "News", idempotencyKey: "n1" })).toEqual(again);
    await fixture.store.append(ref, [said("user", "and?"), said("assistant", "More")]);
    expect(await mirror({ sessionKey: key, text: "More", idempotencyKey: "n1" })).toMatchObject({
      ok: true,
      isDuplicate: true,
    });
    expect(await messages(fixture.store)).toHaveLength(3);
  });

  it("keeps a thread's transcript apart from its parent's", async () => {
    await using fixture = compatFixture(kind);
    const thread = sessionRef({ key: `${key}:thread:5` });
    await openSession(fixture.store, ref, { random: systemRandom });
    await recordInbound(fixture.store, thread, { threadId: 5 }, { clock: systemClock, random: systemRandom });
    await fixture.sessions.appendAssistantMessageToSessionTranscript({ sessionKey: thread.key, text: "in the thread" });
    expect(await messages(fixture.store)).toEqual([]);
    expect(await messages(fixture.store, thread)).toHaveLength(1);
    expect(fixture.sessions.resolveSessionTranscriptPath("s1", undefined, "5/x")).toBe(
      "/state/agents/main/sessions/s1-topic-5%2Fx.jsonl",
    );
  });
});

describe("mirroring while a turn runs", () => {
  it("waits for its end, and gives up in time without tearing a call from its result", async () => {
    const clock = steppedClock();
    await using fixture = compatFixture("memory", { clock });
    await openSession(fixture.store, ref, { random: systemRandom });
    const leaseUntilMs = clock.nowMs() + 60_000;
    await fixture.store.append(ref, [said("user", "go")], {
      turn: { action: "open", turnId: "t", owner: "o", leaseUntilMs, fence: 1 },
    });
    const mirror = fixture.sessions.appendAssistantMessageToSessionTranscript;
    const blocked = await mirror({ sessionKey: key, text: "x", timeoutMs: 200 });
    expect(blocked).toMatchObject({ ok: false, code: "blocked", reason: expect.stringContaining("SESSION_BUSY") });
    const waiting = mirror({ sessionKey: key, text: "the reply", timeoutMs: 1e9 });
    await fixture.store.append(ref, [said("assistant", "the reply")], { turn: { action: "close", fence: 1 } });
    expect(await waiting).toMatchObject({ ok: true, isDuplicate: true });
    expect(await messages(fixture.store)).toHaveLength(2);
  });
});
