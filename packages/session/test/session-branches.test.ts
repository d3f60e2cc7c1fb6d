import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@throughline/core/internal";
import { readResetPolicy } from "@throughline/policy";
import { createMemoryStore } from "@throughline/store-memory";
import { createExtractiveSummarizer } from "@throughline/summarizer-providers";
import { describe, expect, it } from "vitest";
import type { Session } from "@throughline/session";
import { openStore } from "./process-store.ts";
import { createScriptedModel, type ScriptedReply } from "./scripted-model.ts";
import { scriptedSessions, talk, textOf } from "./scripted-sessions.ts";
import { createFixture, key, outline } from "./session-fixture.ts";
import { program, resultsIn, waitingStore } from "./waiting-program.ts";

async function textsOf(session: Session): Promise<readonly string[]> {
  const { messages } = await session.transcript();
  return messages.map(({ content }) => content.map((block) => (block.type === "text" ? block.text : "")).join(""));
}

async function talked() {
  const fixture = createFixture({ script: createScriptedModel("a1", "a2") });
  const session = await fixture.sessions.open(key);
  await session.runTurn("q1");
  await session.runTurn("q2");
  const [q1 = "", a1 = "", q2 = "", a2 = ""] = (await session.transcript()).messages.map(({ recordId }) => recordId);
  return { ...fixture, session, q1, a1, q2, a2 };
}

/** Counts the commits that reach the store, and those of them that open a turn. */
function commitsOf(fixture: Pick<Awaited<ReturnType<typeof talked>>, "store">): { all: number; opening: number } {
  const commits = { all: 0, opening: 0 };
  const { store } = fixture;
  const append = store.append.bind(store);
  store.append = (ref, drafts, options) => {
    commits.all += 1;
    if (options?.turn?.action === "open") commits.opening += 1;
    return append(ref, drafts, options);
  };
  return commits;
}

describe("regenerate", () => {
  it("answers the last message again, as a new branch that the opening of the turn begins", async () => {
    const { session, model, records, q2, a2, ...fixture } = await talked();
    const before = await records();
    const commits = commitsOf(fixture);
    model.push("a2 again");
    const turn = await session.regenerate();
    expect([turn.outcome, turn.text, turn.messages.length]).toEqual(["done", "a2 again", 1]);
    expect(await textsOf(session)).toEqual(["q1", "a1", "q2", "a2 again"]);
    expect(textOf(model.requests.at(-1))).not.toContain("a2");
    const after = await records();
    expect(after.slice(0, before.length)).toEqual(before);
    expect(outline(after.slice(before.length))).toEqual([
      "turn:open",
      "leaf",
      "assistant:stop",
      "call:answered",
      "turn:done",
    ]);
    expect(commits.opening).toBe(1);
    expect((await session.branches(a2)).map(({ text, isCurrent }) => [text, isCurrent])).toEqual([
      ["a2", false],
      ["a2 again", true],
    ]);
    expect((await session.branches(q2)).map(({ text }) => text)).toEqual(["q2"]);
  });

  it("answers a message whose turn failed, and refuses a session without one", async () => {
    const { sessions } = createFixture({ script: createScriptedModel({ error: new TypeError("no") }, "a1") });
    await using session = await sessions.open(key);
    await expect(session.regenerate()).rejects.toMatchObject({ code: "INPUT_INVALID" });
    await expect(session.runTurn("q1")).rejects.toThrow();
    expect((await session.regenerate()).text).toBe("a1");
    expect(await textsOf(session)).toEqual(["q1", "a1"]);
  });
});

describe("edit", () => {
  it("asks another version of a message, beside the first one", async () => {
    const { session, model, records, q1, q2 } = await talked();
    model.push("b1");
    expect((await session.edit(q1, "q1 other")).text).toBe("b1");
    expect(await textsOf(session)).toEqual(["q1 other", "b1"]);
    expect(textOf(model.requests.at(-1))).not.toMatch(/q2|a1/);
    expect(await session.branches(q1)).toMatchObject([
      { recordId: q1, role: "user", text: "q1", isCurrent: false },
      { text: "q1 other", isCurrent: true },
    ]);
    model.push("b2");
    await session.edit(q2, "q2 other");
    expect(await textsOf(session)).toEqual(["q1", "a1", "q2 other", "b2"]);
    const leaves = (await records()).filter(({ type }) => type === "leaf");
    expect(leaves.map(({ record }) => record["targetId"])).toEqual([null, expect.any(String)]);
  });

  it("refuses a record that is no message of the user", async () => {
    const { session, a1, records } = await talked();
    const before = (await records()).length;
    await expect(session.edit(a1, "x")).rejects.toMatchObject({ code: "INPUT_INVALID" });
    await expect(session.edit("gone", "x")).rejects.toMatchObject({ code: "RECORD_NOT_FOUND" });
    await expect(session.edit("", "x")).rejects.toMatchObject({ code: "INPUT_INVALID" });
    expect((await records()).length).toBe(before);
  });

  it("streams, and so does a new reply", async () => {
    const { session, model, q2 } = await talked();
    model.push("b2", "c2");
    const texts: string[] = [];
    for await (const event of session.streamEdit(q2, "q2 other"))
      if (event.name === "text.delta") texts.push(event.text);
    for await (const event of session.streamRegenerate()) if (event.name === "text.delta") texts.push(event.text);
    expect(texts).toEqual(["b2", "c2"]);
    expect(await textsOf(session)).toEqual(["q1", "a1", "q2 other", "c2"]);
  });

  it("goes back to before a compaction, also in another process", async () => {
    const script = createScriptedModel();
    const store = createMemoryStore();
    const given = { store, summarizers: [createExtractiveSummarizer()] };
    const { sessions } = scriptedSessions(script, given);
    await using session = await sessions.open(key);
    await talk(session, script, { turns: 6 });
    const first = (await session.transcript()).messages[2]?.recordId ?? "";
    expect(await session.compact()).toMatchObject({ kind: "compacted" });
    const other = await scriptedSessions(script, given).sessions.open(key);
    script.push({ text: "Another answer." });
    await session.edit(first, "Another question.");
    expect((await session.transcript()).messages).toHaveLength(4);
    const sent = textOf(script.requests.at(-1));
    expect(sent).toContain("Answer 1.");
    expect(sent).not.toContain("Answer 3.");
    script.push({ text: "The next answer." });
    await other.runTurn("The next question.");
    expect(textOf(script.requests.at(-1))).toContain("Answer 1.");
    await other.close();
  });
});

describe("rewind and switchTo", () => {
  it("move the head in one commit, and nothing is deleted", async () => {
    const { session, records, a1, a2, q1, ...fixture } = await talked();
    const commits = commitsOf(fixture);
    await session.rewind(a1);
    expect([await textsOf(session), session.head.headId, commits.all]).toEqual([["q1", "a1"], a1, 1]);
    await session.rewind(a1);
    expect(commits.all).toBe(1);
    await session.rewind(null);
    expect([await textsOf(session), commits.all]).toEqual([[], 2]);
    await session.switchTo(q1);
    expect([await textsOf(session), session.head.headId]).toEqual([["q1", "a1", "q2", "a2"], a2]);
    await expect(session.switchTo("gone")).rejects.toMatchObject({ code: "RECORD_NOT_FOUND" });
    await expect(session.branches("gone")).rejects.toMatchObject({ code: "RECORD_NOT_FOUND" });
    expect((await records()).filter(({ type }) => type === "message")).toHaveLength(4);
  });

  it("mark the messages that have siblings", async () => {
    const { session, model, q1, q2 } = await talked();
    expect((await session.transcript({ branches: true })).messages.some((message) => "branches" in message)).toBe(
      false,
    );
    model.push("b2", "c1");
    await session.regenerate();
    await session.edit(q1, "q1 other");
    const places = async () =>
      (await session.transcript({ branches: true })).messages.map(({ branches }) => branches ?? null);
    expect(await places()).toEqual([{ position: 2, count: 2 }, null]);
    await session.switchTo(q2);
    expect(await places()).toEqual([{ position: 1, count: 2 }, null, null, { position: 2, count: 2 }]);
    expect("branches" in ((await session.transcript()).messages[0] ?? {})).toBe(false);
  });
});

describe.each(["jsonl", "sqlite"] as const)("in the store %s", (name) => {
  it("another process finds every branch", async () => {
    const folder = await mkdtemp(join(tmpdir(), "branches-"));
    const store = await openStore(name, folder);
    const first = createFixture({ store, script: createScriptedModel("a1", "a1 again", "b1") });
    const session = await first.sessions.open(key);
    await session.runTurn("q1");
    await session.regenerate();
    const q1 = (await session.transcript()).messages[0]?.recordId ?? "";
    await session.edit(q1, "q1 other");
    const { messages } = await session.transcript({ branches: true });
    const replies = async (of: Session) => (await of.branches(q1)).map(({ text, isCurrent }) => [text, isCurrent]);
    expect(await replies(session)).toEqual([
      ["q1", false],
      ["q1 other", true],
    ]);
    await first.sessions.close();
    await store.close();
    const again = await openStore(name, folder);
    const second = createFixture({ store: again });
    const reopened = await second.sessions.open(key);
    expect((await reopened.transcript({ branches: true })).messages).toEqual(messages);
    await reopened.switchTo(q1);
    expect([await textsOf(reopened), await replies(reopened)]).toEqual([
      ["q1", "a1 again"],
      [
        ["q1", true],
        ["q1 other", false],
      ],
    ]);
    await second.sessions.close();
    await again.close();
    await rm(folder, { recursive: true });
  });
});

describe("moves of the head and turns", () => {
  it("are SESSION_BUSY while a turn runs, in this handle and in another", async () => {
    const { session, model, sessions, q2, records } = await talked();
    let finish = (): void => {};
    const after = new Promise<void>((resolve) => (finish = resolve));
    model.push({ text: "a3", after } satisfies ScriptedReply);
    const other = await sessions.open(key);
    const running = session.runTurn("q3");
    await expect.poll(() => session.head.turn !== null).toBe(true);
    const before = (await records()).length;
    for (const handle of [session, other])
      for (const call of [
        () => handle.regenerate(),
        () => handle.edit(q2, "x"),
        () => handle.rewind(q2),
        () => handle.switchTo(q2),
      ])
        await expect(call()).rejects.toMatchObject({ code: "SESSION_BUSY" });
    expect((await records()).length).toBe(before);
    finish();
    expect((await running).text).toBe("a3");
  });

  it("end a turn that a dead process left open", async () => {
    const { store, session, a1 } = await talked();
    const turn = { turnId: "left", owner: "gone", leaseUntilMs: systemClock.nowMs() + 60_000 };
    const { fence } = session.head;
    await store.append(session.ref, [], { turn: { action: "open", ...turn, fence: fence + 1 } });
    const owners = { self: "me", stateOf: (name: string) => (name === "me" ? "self" : "gone") as "gone" };
    const second = createFixture({ store, owners, script: createScriptedModel("b2") });
    await using reopened = await second.sessions.open(key);
    expect(reopened.interruptedTurn).toMatchObject({ turnId: "left" });
    await reopened.rewind(a1);
    expect([reopened.head.turn, reopened.interruptedTurn, await textsOf(reopened)]).toEqual([null, null, ["q1", "a1"]]);
  });

  it("leave behind calls that wait for a decision", async () => {
    const moves: readonly ((session: Session) => Promise<unknown>)[] = [
      (session) => session.regenerate(),
      async (session) => session.edit((await session.transcript()).messages[0]?.recordId ?? "", "Pay none back"),
      (session) => session.rewind(null),
    ];
    for (const move of moves) {
      const { open, fixture, paid } = program(await waitingStore(), {}, "Done.");
      const session = await open();
      await move(session);
      expect([session.pendingApprovals, paid]).toEqual([[], []]);
      expect((await fixture.sessions.list()).sessions).toMatchObject([{ pendingApprovals: 0 }]);
    }
  });

  it("leave results behind, so that no later turn reads that the calls may have run", async () => {
    const { open, fixture } = program(await waitingStore(), {}, "Done.", "Later.");
    const session = await open();
    const first = (await session.transcript()).messages[0]?.recordId ?? "";
    await session.edit(first, "Pay none back");
    await session.switchTo(first);
    const resumed = session.resume({ approvals: { "call-A": true } });
    await expect(resumed).rejects.toMatchObject({ code: "APPROVAL_DECIDED" });
    await session.rewind(null);
    await session.switchTo(first);
    await session.runTurn("And now?");
    const results = resultsIn(fixture);
    expect(results).toHaveLength(2);
    for (const text of results) expect(text).toContain("continued on another branch before anybody decided");
  });

  it("refuse what another process changed meanwhile, and store nothing", async () => {
    const { session, store, q2, records } = await talked();
    const append = store.append.bind(store);
    store.append = async (ref, drafts, options) => {
      store.append = append;
      await append(ref, [{ type: "message", message: { role: "user", content: "of another process" } }]);
      return append(ref, drafts, options);
    };
    await expect(session.edit(q2, "x")).rejects.toMatchObject({ code: "APPEND_CONFLICT" });
    expect((await records()).filter(({ type }) => type === "leaf")).toEqual([]);
    expect((await session.edit(q2, "x")).outcome).toBe("done");
  });

  it("stay in the session whose reset is due", async () => {
    let nowMs = systemClock.nowMs();
    const clock = { ...systemClock, nowMs: () => nowMs };
    const store = createMemoryStore({ clock });
    const model = createScriptedModel("a1", "b1");
    const { sessions } = createFixture({
      store,
      clock,
      script: model,
      reset: readResetPolicy({ reset: { mode: "idle", idleMinutes: 5 } }),
    });
    await using session = await sessions.open(key);
    await session.runTurn("q1");
    const { sessionId } = session;
    nowMs += 3_600_000;
    await session.regenerate();
    expect([session.sessionId, await textsOf(session)]).toEqual([sessionId, ["q1", "b1"]]);
  });
});
