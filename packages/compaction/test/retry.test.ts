import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { redactRecords, type SessionEntry, type SessionStore, type Summarizer } from "@throughline/core";
import { resetSession, systemRandom, systemRecordIds } from "@throughline/core/internal";
import { createHistory } from "@throughline/history";
import { historyTargets } from "@throughline/history/internal";
import { createCompactor } from "@throughline/compaction";
import { createEntryLease } from "../src/retry-lease.ts";
import { createSummaryRetry } from "../src/retry-summaries.ts";
import { runRetryLoop } from "../src/retry-loop.ts";
import { readRetries } from "../src/retry-entry.ts";
import { tokenMeasure } from "../src/compactor.ts";
import type { RetryOutcome, SummaryRetryOptions } from "../src/retry-options.ts";
import type { SummaryRetry } from "../src/retry-summaries.ts";
import type { TokenMeasure } from "../src/compaction-work.ts";
import { emptyCalibration } from "@throughline/tokens";
import { StoppedClock } from "./stopped-clock.ts";
import {
  allRecords,
  assistant,
  begin,
  contextOf,
  counter,
  failing,
  places,
  ports,
  ref,
  request,
  summarizer,
  turns,
  user,
} from "./compaction-fixture.ts";
import type { Place } from "./compaction-fixture.ts";

const better = "They read all the files and decided on JSON Lines.";

describe.each(places)("summaries made again over store-$name", ({ create }) => {
  let place: Place;
  let store: SessionStore;
  let clock: StoppedClock;
  beforeEach(() => {
    place = create();
    store = place.open();
    clock = new StoppedClock();
  });
  afterEach(async () => {
    await store.close();
    place.remove();
  });

  function retry(summarizers: readonly Summarizer[], more: Partial<SummaryRetryOptions> = {}): SummaryRetry {
    const measure = tokenMeasure(counter, emptyCalibration);
    return createSummaryRetry({ store, clock, ids: systemRecordIds, summarizers, measure, ...more });
  }
  async function compact(summarizers: readonly Summarizer[] = [failing]): Promise<string> {
    const result = await createCompactor({ store, ...ports, summarizers }).compact(ref, request(16_000));
    if (result.kind !== "compacted") throw new Error(result.kind);
    return result.recordId;
  }
  const summary = async (): Promise<string> => JSON.stringify((await contextOf(store)).messages[0]?.content);
  const entry = async (): Promise<SessionEntry> => (await store.load(ref))?.entry ?? { sessionId: "" };
  const kinds = (outcomes: readonly RetryOutcome[]): string[] => outcomes.map(({ kind }) => kind);

  it("survive a restart, have the original messages with their results, and reach the next request [RTY-02, RTY-04, RTY-07, RTY-08, C45]", async () => {
    await begin(store, turns(40));
    await compact();
    const { messages: before } = await contextOf(store);
    await store.close();
    store = place.open();
    const model = summarizer(better);
    const [outcome] = await retry([model]).run(ref);
    expect(outcome).toMatchObject({ kind: "improved", as: "compaction" });
    expect(model.requests[0]?.text).toContain("[Tool result read]");
    expect(model.requests[0]?.text).toContain("Request 0");
    const { messages: after } = await contextOf(store);
    expect(after.slice(1).map(({ recordId }) => recordId)).toEqual(before.slice(1).map(({ recordId }) => recordId));
    expect(await summary()).toContain("JSON Lines");
    expect(await summary()).not.toContain("not summarized yet");
    expect(readRetries(await entry())).toEqual({});
    expect((await entry()).compactionCount).toBe(1);
    expect(await retry([model]).run(ref)).toEqual([]);
    expect(await retry([model]).run(ref, { scan: true })).toEqual([]);
    expect(model.requests).toHaveLength(1);
  });

  it("reach a live session by what was appended [RTY-04, C45]", async () => {
    await begin(store, turns(40));
    await compact();
    const target = historyTargets.get("anthropic");
    if (target === undefined) throw new Error("no target");
    const live = createHistory(target);
    live.append(await allRecords(store));
    const [outcome] = await retry([summarizer(better)]).run(ref);
    const fromSeq = outcome?.kind === "improved" ? (outcome.appended.records[0]?.seq ?? 0) : 0;
    live.append((await allRecords(store)).filter(({ seq }) => seq >= fromSeq));
    expect(JSON.stringify(live.render().messages)).toContain("JSON Lines");
  });

  it("are a note beside the branch while a turn is open, and the history has it", async () => {
    await begin(store, turns(40));
    await compact();
    const turn = { action: "open", turnId: "t", owner: "o", leaseUntilMs: Date.parse("2099-01-01"), fence: 1 } as const;
    await store.append(ref, [user("hello")], { turn });
    const { head } = (await store.load(ref)) ?? { head: null };
    const [outcome] = await retry([summarizer(better)]).run(ref);
    expect(outcome).toMatchObject({ kind: "improved", as: "note" });
    expect(await summary()).toContain("JSON Lines");
    expect((await store.load(ref))?.head.headId).toBe(head?.headId);
    expect(await retry([summarizer(better)]).run(ref, { scan: true })).toEqual([]);
  });

  it("wait longer after each failure, each for itself, and give up at the limit", async () => {
    await begin(store, turns(40));
    const first = await compact();
    await store.append(ref, turns(40, 40));
    const second = await compact();
    // The first one always fails; the second has its turn all the same.
    const model = summarizer(({ text }) => (text.includes("Request 0:") ? "" : better));
    const limits = { maxAttempts: 3, firstDelayMs: 1000 };
    const outcomes = await retry([model], limits).run(ref);
    expect(outcomes).toMatchObject([
      { kind: "failed", summaryId: first, attempts: 1, nextAtMs: clock.atMs + 1000 },
      { kind: "improved", summaryId: second },
    ]);
    expect(kinds(await retry([model], limits).run(ref))).toEqual(["waiting"]);
    clock.atMs += 1000;
    expect(await retry([model], limits).run(ref)).toMatchObject([
      { kind: "failed", attempts: 2, nextAtMs: clock.atMs + 2000 },
    ]);
    clock.atMs += 2000;
    expect(await retry([model], limits).run(ref)).toMatchObject([{ kind: "failed", attempts: 3, nextAtMs: null }]);
    clock.atMs += 1e9;
    expect(kinds(await retry([model], limits).run(ref))).toEqual(["given-up"]);
  });

  it("of an earlier compaction reach the newest one, which built on the poorer", async () => {
    await begin(store, [user("Remember FACT-1."), assistant("I will."), ...turns(40)]);
    const first = await compact();
    await store.append(ref, turns(40, 40));
    const chained = summarizer(({ previousSummary, text }) => {
      const facts = `${previousSummary ?? ""}\n${text}`.match(/FACT-\d/g) ?? [];
      return `${better} ${[...new Set(facts)].join(" ")}`;
    });
    const second = await compact([chained]);
    expect((await summary()).split("[Taken from")[0]).not.toContain("FACT-1");
    const outcomes = await retry([chained]).run(ref);
    expect(outcomes).toMatchObject([
      { kind: "improved", summaryId: first, as: "note" },
      { kind: "improved", summaryId: second, as: "compaction" },
    ]);
    expect((await summary()).split("[Taken from")[0]).toContain("FACT-1");
    expect(await retry([chained]).run(ref, { scan: true })).toEqual([]);
  });

  it("build on the summary of another program that came before", async () => {
    await begin(store, turns(4));
    const compaction = {
      type: "compaction",
      id: "pi-1",
      summary: "They met. FACT-9.",
      firstKeptEntryId: "pi-1",
      tokensBefore: 9,
    };
    await store.append(ref, [compaction, ...turns(40, 4)]);
    await compact();
    const model = summarizer(({ previousSummary }) => `${better} ${previousSummary ?? "nothing before"}`);
    expect(kinds(await retry([model]).run(ref))).toEqual(["improved"]);
    expect(model.requests[0]?.previousSummary).toBe("They met. FACT-9.");
    expect(await summary()).toContain("FACT-9");
  });

  it("are made of what is left when a part was redacted", async () => {
    await begin(store, [user("The key is `hunter2secret`."), assistant("Noted."), ...turns(40)]);
    await compact([summarizer("The key is hunter2secret.")]);
    const id = (await allRecords(store))[0]?.id ?? "";
    await redactRecords(store, ref, [id], { reason: "a secret" });
    const model = summarizer(better);
    expect(kinds(await retry([model]).run(ref, { scan: true }))).toEqual(["improved"]);
    expect(model.requests[0]?.text).not.toContain("hunter2secret");
    expect(JSON.stringify(await allRecords(store))).not.toContain("hunter2secret");
    expect(await summary()).toContain("JSON Lines");
  });

  it("leave no record with what was redacted, also when a turn was open: without a model, as soon as it is not", async () => {
    await begin(store, [user("The key is `hunter2secret`."), assistant("Noted."), ...turns(40)]);
    await compact([summarizer("The key is hunter2secret.")]);
    const [secret] = await allRecords(store);
    const turn = { turnId: "t", owner: "o", leaseUntilMs: Date.parse("2099-01-01"), fence: 1 } as const;
    await store.append(ref, [user("hello")], { turn: { ...turn, action: "open" } });
    await redactRecords(store, ref, [secret?.id ?? ""], { reason: "a secret" });
    const model = summarizer(better);
    expect(await retry([model]).run(ref, { scan: true })).toMatchObject([{ kind: "improved", as: "note" }]);
    expect(kinds(await retry([model]).run(ref))).toEqual(["waiting"]);
    await store.append(ref, [assistant("hi")], { turn: { action: "close", fence: turn.fence } });
    expect(await retry([model]).run(ref)).toMatchObject([{ kind: "improved", as: "compaction" }]);
    expect(JSON.stringify(await allRecords(store))).not.toContain("hunter2secret");
    expect(await summary()).toContain("JSON Lines");
    expect(model.requests).toHaveLength(1);
    expect(await retry([model]).run(ref, { scan: true })).toEqual([]);
    expect(readRetries(await entry())).toEqual({});
  });

  it("of a process that ended while it replaced a text that is gone: the next start has the better one", async () => {
    await begin(store, [user("The key is `hunter2secret`."), assistant("Noted."), ...turns(40)]);
    await compact([summarizer("The key is hunter2secret.")]);
    const [secret] = await allRecords(store);
    await redactRecords(store, ref, [secret?.id ?? ""], { reason: "a secret" });
    expect(JSON.stringify(await allRecords(store))).not.toContain("hunter2secret");
    const redact = store.redact.bind(store);
    store.redact = () => Promise.reject(new Error("killed"));
    await expect(retry([summarizer(better)]).run(ref, { scan: true })).rejects.toThrow("killed");
    store.redact = redact;
    await retry([]).run(ref, { scan: true });
    expect(JSON.stringify(await allRecords(store))).not.toContain("hunter2secret");
    expect(await summary()).toContain("JSON Lines");
  });

  it("are due for what was built on a summary that repeats what was redacted", async () => {
    await begin(store, [user("The key is `hunter2secret`."), assistant("Noted."), ...turns(40)]);
    const told = ({ text, previousSummary }: { text: string; previousSummary: string | null }): string =>
      `${better} ${`${previousSummary ?? ""} ${text}`.includes("hunter2secret") ? "hunter2secret" : "Nothing else."}`;
    await compact([summarizer(told)]);
    const id = (await allRecords(store))[0]?.id ?? "";
    await redactRecords(store, ref, [id], { reason: "a secret" });
    await store.append(ref, turns(40, 40));
    await compact([summarizer(told)]);
    // What is built meanwhile does not repeat it: the summary before was out of use at once.
    expect(await summary()).not.toContain("hunter2secret");
    expect(kinds(await retry([summarizer(told)]).run(ref))).toEqual(["improved", "improved"]);
    expect(JSON.stringify((await contextOf(store)).messages)).not.toContain("hunter2secret");
    expect(await retry([summarizer(told)]).run(ref, { scan: true })).toEqual([]);
  });

  it("are counted by what the session has learned of its tokenizer", async () => {
    await begin(store, turns(40));
    await compact();
    const measured: string[] = [];
    const measureFor = ({ sessionId }: { sessionId: string }): TokenMeasure => {
      measured.push(sessionId);
      // Every text has more tokens than everything it could replace.
      return { countMessage: () => 1, countText: (text) => (text === "" ? 0 : 1_000_000) };
    };
    const model = summarizer(better);
    expect(kinds(await retry([model], { measureFor }).run(ref))).toEqual(["failed"]);
    expect(new Set(measured)).toEqual(new Set([(await store.load(ref))?.sessionId]));
  });

  it("stay with their session: after a reset the new one gets none of the old", async () => {
    await begin(store, turns(40));
    await compact();
    const model = summarizer(async () => {
      await resetSession(store, ref, { random: systemRandom });
      return better;
    });
    expect(kinds(await retry([model]).run(ref))).toEqual(["settled"]);
    expect(await allRecords(store)).toEqual([]);
  });

  it("are worked on by one process at a time that shares the store", async () => {
    await begin(store, turns(40));
    await compact();
    const other = createEntryLease({ store, clock, owner: "other", leaseMs: 1000 });
    const mine = createEntryLease({ store, clock, owner: "mine" });
    expect(await other.acquire(ref)).toBe(true);
    const model = summarizer(better);
    expect(await retry([model], { lease: mine }).run(ref)).toEqual([]);
    clock.atMs += 1000;
    expect(kinds(await retry([model], { lease: mine }).run(ref))).toEqual(["improved"]);
    expect(await other.acquire(ref)).toBe(true);
    await other.release(ref);
    expect(await entry()).not.toHaveProperty("summaryRetryLease");
  });
});

describe("the loop that looks for pending summaries", () => {
  it("begins at once, goes on at its interval, lets no session hold up another, and is off at 0", async () => {
    const sleeps: number[] = [];
    const stop = new AbortController();
    const clock = {
      nowMs: () => 0,
      sleep: async (delayMs: number) => {
        sleeps.push(delayMs);
        if (sleeps.length === 3) stop.abort();
      },
    };
    const other = { ...ref, key: "agent:main:cli:direct:other" };
    const runs: string[] = [];
    const failed: unknown[] = [];
    const outcomes: RetryOutcome[] = [];
    const retry: SummaryRetry = {
      run: async ({ key }, options) => {
        runs.push(`${key.split(":").at(-1)} ${options?.scan === true ? "scan" : "entry"}`);
        if (key === ref.key) throw new TypeError("broken");
        return [{ kind: "settled", summaryId: "s" }];
      },
    };
    const loop = {
      retry,
      clock,
      sessions: () => [ref, other],
      onOutcome: (_ref: unknown, outcome: RetryOutcome) => void outcomes.push(outcome),
      onError: (_ref: unknown, error: unknown) => void failed.push(error),
      signal: stop.signal,
    };
    await runRetryLoop(loop);
    expect(runs).toEqual(["home scan", "other scan", "home entry", "other entry", "home entry", "other entry"]);
    expect(sleeps).toEqual([60_000, 60_000, 60_000]);
    expect([failed.length, outcomes.length]).toEqual([3, 3]);
    await runRetryLoop({ ...loop, intervalSeconds: 0, signal: new AbortController().signal });
    expect(runs).toHaveLength(6);
  });
});
