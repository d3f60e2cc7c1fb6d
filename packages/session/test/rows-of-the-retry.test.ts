import { describe, expect, it } from "vitest";
import type { StoredRecord, Summarizer, SummaryRequest } from "@throughline/core";
import type { AgentSession } from "../src/whole-turn/agent-session.ts";
import { createMemoryData, type MemoryData } from "@throughline/store-memory/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { until } from "@throughline/test-kit";
import { createScriptedModel } from "./scripted-model.ts";
import {
  createManualClock,
  ofType,
  scriptedSessions,
  talk,
  type ManualClock,
  type ScriptedSessions,
} from "./scripted-sessions.ts";
import { allRecords, key, workingSummary } from "./whole-turn-fixture.ts";

const startMs = Date.UTC(2026, 4, 1);

/** A summarizer that can be put to work, and what it was given. */
interface Switched {
  readonly summarizer: Summarizer;
  readonly given: SummaryRequest[];
  isUp: boolean;
  /** Fails for texts with these words, up or not. */
  hates: string | null;
}

function switched(name = "late"): Switched {
  const given: SummaryRequest[] = [];
  const one: Switched = {
    given,
    isUp: false,
    hates: null,
    summarizer: {
      summarize: (request) => {
        given.push(request);
        const isHated = one.hates !== null && request.text.includes(one.hates);
        if (!one.isUp || isHated) return Promise.reject(new Error("no server there"));
        return Promise.resolve({ summary: workingSummary(given.length), source: name, usage: null });
      },
    },
  };
  return one;
}

interface Retried extends ScriptedSessions {
  readonly clock: ManualClock;
  readonly session: AgentSession;
}

async function open(
  data: MemoryData,
  summarizers: readonly Summarizer[],
  retry: NonNullable<Parameters<typeof scriptedSessions>[1]>["retry"],
  clock = createManualClock(startMs),
): Promise<Retried> {
  const script = createScriptedModel();
  const fixture = scriptedSessions(script, {
    store: createMemoryStore({ data, clock }),
    summarizers,
    clock,
    ...(retry === undefined ? {} : { retry }),
  });
  return { ...fixture, clock, session: await fixture.sessions.open(key) };
}

/** A session whose summary no model wrote. */
async function poor(
  data: MemoryData,
  summarizers: readonly Summarizer[],
  rounds = 1,
): Promise<readonly StoredRecord[]> {
  const script = createScriptedModel();
  const { sessions, store } = scriptedSessions(script, { store: createMemoryStore({ data }), summarizers });
  const session = await sessions.open(key);
  for (let round = 1; round <= rounds; round++) {
    script.push({ calls: [{ id: `call_${round}`, name: "echo", arguments: { text: `planted ${round}` } }] }, "Echoed.");
    await session.runTurn(`Round ${round}, say it`);
    await talk(session, script, { turns: 8 });
    const result = await session.compact();
    expect(result).toMatchObject({ kind: "compacted", source: "stub", needsRetry: true });
  }
  await sessions.close();
  return allRecords(store);
}

describe("a summary that no model wrote", () => {
  it("is looked for every 60 seconds, and not at all with 0", { tags: ["slow"] }, async () => {
    const data = createMemoryData();
    const late = switched();
    await poor(data, [late.summarizer]);
    late.given.length = 0;
    const fixture = await open(data, [late.summarizer], { firstDelayMs: 1 });
    for (let looks = 1; looks <= 3; looks++) {
      await until(() => fixture.clock.sleeps().includes(60_000));
      expect(late.given).toHaveLength(looks);
      fixture.clock.advance(59_999);
      await fixture.session.messages();
      expect(late.given).toHaveLength(looks);
      fixture.clock.advance(1);
    }
    await fixture.sessions.close();
    const off = await open(data, [late.summarizer], { intervalSeconds: 0, firstDelayMs: 1 });
    const before = late.given.length;
    await off.session.runTurn("And?");
    expect(off.clock.sleeps()).not.toContain(60_000);
    expect(late.given).toHaveLength(before);
    await off.sessions.close();
  });

  it(
    "is made again when its session is opened, also after another one, without waiting for the next look",
    { tags: ["slow"] },
    async () => {
      const data = createMemoryData();
      const late = switched();
      await poor(data, [late.summarizer]);
      late.isUp = true;
      const script = createScriptedModel();
      const clock = createManualClock(startMs);
      const fixture = scriptedSessions(script, {
        store: createMemoryStore({ data, clock }),
        summarizers: [late.summarizer],
        clock,
        retry: {},
      });
      await fixture.sessions.open("agent:main:cli:direct:other");
      await until(() => clock.sleeps().includes(60_000));
      expect(fixture.all("retry.improved")).toHaveLength(0);
      await fixture.sessions.open(key);
      await until(() => fixture.all("retry.improved").length === 1);
      await fixture.sessions.close();
    },
  );

  it("is made again from the very messages that went, results of tools included, by the same summarizers", async () => {
    const data = createMemoryData();
    const [first, second] = [switched("first"), switched("second")];
    await poor(data, [first.summarizer, second.summarizer]);
    const original = first.given[0];
    expect(original?.text).toContain("echo: planted 1");
    first.given.length = 0;
    second.isUp = true;
    const fixture = await open(data, [first.summarizer, second.summarizer], {});
    await until(() => fixture.all("retry.improved").length === 1);
    // The chain is gone through from its beginning, each time with what the first attempt was given.
    expect(first.given.map(({ text }) => text)).toEqual([original?.text]);
    expect(second.given.at(-1)?.text).toBe(original?.text);
    const [before, better] = ofType(await allRecords(fixture.store), "compaction");
    const range = ({ details }: Readonly<Record<string, unknown>>): unknown => {
      const { summarizedFromSeq, summarizedToSeq } = details as Readonly<Record<string, unknown>>;
      return [summarizedFromSeq, summarizedToSeq];
    };
    expect(range(better ?? {})).toEqual(range(before ?? {}));
    await fixture.sessions.close();
  });

  it("is followed by the better one as a new compaction while it is the newest; its own record stays", async () => {
    const data = createMemoryData();
    const late = switched();
    const before = await poor(data, [late.summarizer]);
    late.isUp = true;
    const fixture = await open(data, [late.summarizer], {});
    await until(() => fixture.all("retry.improved").length === 1);
    const after = await allRecords(fixture.store);
    expect(after.slice(0, before.length)).toEqual(before);
    const [old, better] = ofType(after, "compaction");
    expect(better).toMatchObject({
      firstKeptEntryId: old?.["firstKeptEntryId"],
      details: { source: "model", needsRetry: false, supersedes: old?.["id"] },
    });
    expect(fixture.all("retry.improved")).toMatchObject([{ as: "compaction" }]);
    await fixture.session.refresh();
    expect(JSON.stringify((await fixture.session.messages()).messages)).toContain("Topics: number 2.");
    await fixture.sessions.close();
  });

  it("holds up no other with its failures: each has attempts and waits of its own, and a limit", async () => {
    const data = createMemoryData();
    const late = switched();
    const before = await poor(data, [late.summarizer], 2);
    const [older, newer] = before.filter(({ type }) => type === "compaction").map(({ id }) => id);
    late.isUp = true;
    // The older one cannot be made, however often it is tried.
    late.hates = "planted 1";
    const limits = { maxAttempts: 3, firstDelayMs: 60_000, maxDelayMs: 3_600_000 };
    const fixture = await open(data, [late.summarizer], limits);
    await until(() => fixture.all("retry.improved").length === 1);
    expect(fixture.all("retry.improved")).toMatchObject([{ summaryId: newer, as: "compaction" }]);
    const failed = (): unknown =>
      fixture.all("retry.failed").map(({ summaryId, attempts, nextAtMs }) => [summaryId, attempts, nextAtMs]);
    await until(() => fixture.clock.sleeps().includes(60_000));
    expect(failed()).toEqual([[older, 1, startMs + 60_000]]);
    fixture.clock.advance(60_000);
    await until(() => fixture.all("retry.failed").length === 2);
    for (let minutes = 0; minutes < 2; minutes++) {
      await until(() => fixture.clock.sleeps().includes(60_000));
      fixture.clock.advance(60_000);
    }
    await until(() => fixture.all("retry.failed").length === 3);
    // Each wait is twice the one before, and after the last attempt there is none.
    expect(failed()).toEqual([
      [older, 1, startMs + 60_000],
      [older, 2, startMs + 180_000],
      [older, 3, null],
    ]);
    const { retries } = await fixture.session.status();
    expect(retries).toMatchObject([{ summaryId: older, state: "given-up", attempts: 3 }]);
    await fixture.sessions.close();
  });

  it(
    "that is not the newest gets its better text beside the branch, in a record that names it",
    { tags: ["slow"] },
    async () => {
      const data = createMemoryData();
      const late = switched();
      const before = await poor(data, [late.summarizer], 2);
      const [older] = before.filter(({ type }) => type === "compaction").map(({ id }) => id);
      late.isUp = true;
      const fixture = await open(data, [late.summarizer], {});
      await until(() => fixture.all("retry.improved").length === 2);
      expect(fixture.all("retry.improved").map(({ as }) => as)).toEqual(["note", "compaction"]);
      const after = await allRecords(fixture.store);
      expect(after.slice(0, before.length)).toEqual(before);
      const notes = after.filter(
        ({ record }) => (record["data"] as { kind?: string } | undefined)?.kind === "summary-superseded",
      );
      expect(notes).toMatchObject([{ side: true, record: { data: { summaryId: older } } }]);
      await fixture.sessions.close();
    },
  );
});
