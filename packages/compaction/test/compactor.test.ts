import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type RecordDraft, redactRecords, type SessionStore } from "@throughline/core";
import { createCompactor } from "@throughline/compaction";
import { readCompactionDetails } from "../src/compaction-details.ts";
import { readRetries } from "../src/retry-entry.ts";
import type { CompactionEvent } from "../src/compaction-event.ts";
import type { Compactor, CompactorOptions } from "@throughline/compaction";
import { replaceMembers } from "@throughline/test-kit";
import {
  allRecords,
  assistant,
  begin,
  call,
  contextOf,
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

const good = "They read the files one by one and found nothing wrong so far.";

describe.each(places)("compaction over store-$name", ({ create }) => {
  let place: Place;
  let store: SessionStore;
  let events: CompactionEvent[];
  beforeEach(() => {
    place = create();
    store = place.open();
    events = [];
  });
  afterEach(async () => {
    await store.close();
    place.remove();
  });

  function compactor(options: Partial<CompactorOptions> = {}): Compactor {
    const onEvent = (event: CompactionEvent): void => void events.push(event);
    return createCompactor({ store, ...ports, summarizers: [summarizer(good)], onEvent, ...options });
  }
  const names = (): string[] => events.map(({ name }) => name);
  const summaryOf = async (): Promise<string> => JSON.stringify((await contextOf(store)).messages[0]);

  it("puts the summary into the very next request, and into one after a restart", async () => {
    await begin(store, turns(40));
    const model = summarizer(good);
    const compacting = await compactor({ summarizers: [model] }).compact(ref, request(16_000));
    expect(compacting).toMatchObject({ kind: "compacted", source: "model", provider: "scripted", needsRetry: false });
    if (compacting.kind !== "compacted") return;
    expect(model.requests).toHaveLength(1);
    expect(model.requests[0]?.text).toContain("[Tool result read]");
    const context = await contextOf(store);
    expect(context.messages[0]).toMatchObject({ role: "compactionSummary", recordId: compacting.recordId });
    expect(await summaryOf()).toContain(good);
    expect((await store.load(ref))?.entry).toMatchObject({
      compactionCount: 1,
      totalTokens: compacting.tokensAfter,
      totalTokensFresh: false,
    });
    expect(compacting.tokensAfter).toBeLessThan(compacting.tokensBefore);
    expect(names()).toEqual(["compaction.planned", "compaction.applied"]);
    await store.close();
    store = place.open();
    expect(await contextOf(store)).toEqual(context);
    expect((await allRecords(store)).filter(({ type }) => type === "message")).toHaveLength(160);
  });

  it("fills the record's fields and details", async () => {
    const calls = [
      call("w", "write", { path: "src/new.ts", content: "export {};" }),
      call("r", "read", { path: "README.md" }),
    ];
    await begin(store, [user("Never touch vendor/. Start."), assistant("ok", calls), ...turns(40)]);
    await compactor().compact(ref, request(16_000));
    const { record } = (await allRecords(store)).find(({ type }) => type === "compaction") ?? { record: {} };
    expect(record).toMatchObject({ firstKeptEntryId: expect.any(String), tokensBefore: expect.any(Number) });
    expect(record).toMatchObject({ tokensAfter: expect.any(Number), messagesRemoved: expect.any(Number) });
    expect(record).not.toHaveProperty("fromCheckpoint");
    const details = readCompactionDetails((record as { details?: unknown }).details);
    expect(details).toMatchObject({
      source: "model",
      needsRetry: false,
      summarizedFromSeq: 1,
      firstRequest: "Never touch vendor/. Start.",
    });
    expect(details?.modifiedFiles).toEqual(["src/new.ts"]);
    expect(details?.readFiles).toContain("README.md");
    expect(details?.constraints).toContain("Never touch vendor/.");
  });

  it("keeps what arrives while a summary is made, and swaps exactly what was summarized [CMP-19, C45]", async () => {
    await begin(store, turns(40));
    const { promise, resolve } = Promise.withResolvers<string>();
    const run = compactor({ summarizers: [summarizer(() => promise)] }).begin(ref, request(16_000));
    const late = [user("and one more thing"), assistant("noted")];
    await store.append(ref, late);
    resolve(good);
    expect(await run.ready).toBe("ready");
    await store.append(ref, [user("a last one")]);
    const applied = await run.apply();
    expect(applied.kind).toBe("compacted");
    const { messages } = await contextOf(store);
    const said = JSON.stringify(messages);
    for (const text of ["and one more thing", "noted", "a last one", good]) expect(said).toContain(text);
    expect(messages.at(-1)).toMatchObject({ role: "user" });
    expect(messages[1]).toMatchObject({ recordId: applied.kind === "compacted" ? applied.firstKeptId : "" });
  });

  it("waits for a turn it does not belong to, and runs within one whose fence it has", async () => {
    await begin(store, turns(40));
    const turn = { turnId: "t1", owner: "other", leaseUntilMs: Date.parse("2099-01-01"), fence: 1 };
    await store.append(ref, [user("go")], { turn: { action: "open", ...turn } });
    const run = compactor().begin(ref, request(16_000));
    expect(await run.apply()).toEqual({ kind: "busy" });
    expect(run.state).toBe("ready");
    expect(await run.apply({ turn: { action: "within", fence: 1 } })).toMatchObject({ kind: "compacted" });
    expect((await store.load(ref))?.head.turn?.turnId).toBe("t1");
  });

  it("runs once for two callers at once, and other sessions are not held up", async () => {
    await begin(store, turns(40));
    const model = summarizer(good);
    const two = compactor({ summarizers: [model] });
    const [one, other] = await Promise.all([two.compact(ref, request(16_000)), two.compact(ref, request(16_000))]);
    expect(other).toEqual(one);
    expect(model.requests).toHaveLength(1);
    expect((await allRecords(store)).filter(({ type }) => type === "compaction")).toHaveLength(1);
  });

  it("goes on for one caller when the other aborts, whoever began it, and stops when nobody waits for it", async () => {
    for (const aborted of [0, 1]) {
      await begin(store, turns(20, 20 * aborted));
      const asked = Promise.withResolvers<void>();
      const answer = Promise.withResolvers<string>();
      const model = summarizer(() => (asked.resolve(), answer.promise));
      const two = compactor({ summarizers: [model] });
      const controllers = [new AbortController(), new AbortController()];
      const results = controllers.map(({ signal }) =>
        two.compact(ref, request(4000, { signal })).then(
          ({ kind }) => kind,
          (error: { readonly code?: string }) => error.code,
        ),
      );
      await asked.promise;
      controllers[aborted]?.abort();
      expect(await results[aborted]).toBe("ABORTED");
      expect(model.requests[0]?.signal?.aborted).toBe(false);
      answer.resolve(good);
      expect(await results[1 - aborted]).toBe("compacted");
    }
    await begin(store, turns(20, 40));
    const asked = Promise.withResolvers<void>();
    const model = summarizer(() => (asked.resolve(), new Promise<string>(() => {})));
    const alone = compactor({ summarizers: [model] });
    const controllers = [new AbortController(), new AbortController()];
    const both = controllers.map(({ signal }) => alone.compact(ref, request(4000, { signal })));
    const ended = Promise.all(both.map((each) => expect(each).rejects.toMatchObject({ code: "ABORTED" })));
    await asked.promise;
    for (const controller of controllers) controller.abort();
    await ended;
    expect(model.requests[0]?.signal?.aborted).toBe(true);
    // And whoever asks next does not get the one that was stopped.
    expect(await compactor().compact(ref, request(4000))).toMatchObject({ kind: "compacted" });
  });

  it("gives way to a compaction, a reset or a rewind that came first", async () => {
    for (const arrives of ["compaction", "reset", "rewind"]) {
      await begin(store, turns(40));
      const run = compactor().begin(ref, request(16_000));
      await run.ready;
      const { head } = (await store.load(ref)) ?? { head: { headId: "" } };
      if (arrives === "compaction") await compactor().compact(ref, request(16_000));
      else if (arrives === "reset") await store.append(ref, [{ type: "reset", reason: "new" }]);
      else
        await store.append(ref, [{ type: "leaf", targetId: head.headId }], {
          rewindTo: (await allRecords(store))[9]?.id ?? null,
        });
      expect(await run.apply()).toEqual({ kind: "superseded" });
      expect(run.state).toBe("superseded");
    }
  });

  it("summarizes again when a message was redacted meanwhile, and the removed words are nowhere", async () => {
    await begin(store, [user("The key is hunter2secret."), assistant("Noted: hunter2secret."), ...turns(40)]);
    const model = summarizer(
      ({ text }) => `${good} ${text.includes("hunter2secret") ? "The key is hunter2secret." : ""}`,
    );
    const run = compactor({ summarizers: [model] }).begin(ref, request(16_000));
    await run.ready;
    const ids = (await allRecords(store)).slice(0, 2).map(({ id }) => id);
    await redactRecords(store, ref, ids, { reason: "a secret" });
    expect(await run.apply()).toMatchObject({ kind: "compacted" });
    expect(model.requests).toHaveLength(2);
    expect(JSON.stringify(await allRecords(store))).not.toContain("hunter2secret");
  });

  it("compacts by hand, and says kindly why not", async () => {
    await begin(store, turns(1));
    expect(await compactor().compact(ref, request(200_000))).toMatchObject({
      kind: "nothing",
      reason: "too-few-messages",
    });
    await store.append(ref, turns(10, 1));
    const result = await compactor().compact(ref, request(200_000));
    expect(result).toMatchObject({
      kind: "compacted",
      tokensBefore: expect.any(Number),
      tokensAfter: expect.any(Number),
    });
  });

  it("marks what no model wrote for retry, in the entry too, and never fails", async () => {
    await begin(store, turns(40));
    const result = await compactor({ summarizers: [failing] }).compact(ref, request(16_000));
    expect(result).toMatchObject({ kind: "compacted", source: "stub", provider: null, needsRetry: true });
    const id = result.kind === "compacted" ? result.recordId : "";
    await store.close();
    store = place.open();
    const state = await store.load(ref);
    expect(readRetries(state?.entry ?? { sessionId: "" })).toEqual({ [id]: { attempts: 0, nextAtMs: 0, fromSeq: 1 } });
    expect(await summaryOf()).toContain("no longer shown");
  });

  it("writes nothing when it is aborted", async () => {
    await begin(store, turns(40));
    const before = await store.load(ref);
    const stop = new AbortController();
    const slow = summarizer(() => new Promise<string>(() => {}));
    const work = compactor({ summarizers: [slow] }).compact(ref, request(16_000, { signal: stop.signal }));
    stop.abort();
    await expect(work).rejects.toMatchObject({ code: "ABORTED" });
    expect(await store.load(ref)).toEqual(before);
    await expect(compactor().compact(ref, request(16_000, { signal: stop.signal }))).rejects.toMatchObject({
      code: "ABORTED",
    });
  });

  it("stopped in the background is not applied any more", async () => {
    await begin(store, turns(40));
    const run = compactor().begin(ref, request(16_000));
    await run.ready;
    run.stop();
    await expect(run.apply()).rejects.toMatchObject({ code: "ABORTED" });
    expect(run.state).toBe("stopped");
    expect((await allRecords(store)).some(({ type }) => type === "compaction")).toBe(false);
    expect(await compactor().compact(ref, request(16_000))).toMatchObject({ kind: "compacted" });
  });

  it("reads the window and no more, however long the session is", async () => {
    let recordsRead = 0;
    const counted = replaceMembers(store, {
      async *read(...args) {
        for await (const page of store.read(...args)) {
          recordsRead += page.records.length;
          yield page;
        }
      },
    });
    await begin(store, []);
    const reads: number[] = [];
    for (let round = 0; round < 6; round++) {
      await store.append(ref, turns(40, round * 40));
      recordsRead = 0;
      await createCompactor({ store: counted, ...ports, summarizers: [summarizer(good)] }).compact(
        ref,
        request(16_000),
      );
      reads.push(recordsRead);
    }
    // The window, and three looks at what was removed from it; the first window is a little smaller.
    expect(Math.max(...reads.slice(1))).toBeLessThan((reads[0] ?? 0) * 1.4);
    expect(reads.at(-1)).toBe(reads[2]);
  });

  it("names the memory files written since the last compaction, and the tool that finds more", async () => {
    const note = (path: string): RecordDraft => assistant("noting", [call(path, "write", { path, content: "x" })]);
    await begin(store, [...turns(20), note("/home/me/memory/2026-03-01.md"), ...turns(20, 20)]);
    const searching = { memorySearchTool: "memory_search" };
    await compactor(searching).compact(ref, request(16_000));
    expect(await summaryOf()).toContain(
      "Memory files written since the summary before: memory/2026-03-01.md. What is not",
    );
    expect(await summaryOf()).toContain("memory_search");
    await store.append(ref, [...turns(20, 40), note("./memory/2026-03-02.md"), ...turns(20, 60)]);
    await compactor(searching).compact(ref, request(16_000));
    expect(await summaryOf()).toContain("memory/2026-03-02.md");
    expect(await summaryOf()).not.toContain("memory/2026-03-01.md");
  });

  it("keeps the thinking level for whoever reads the window alone", async () => {
    await begin(store, [{ type: "thinking_level_change", thinkingLevel: "high" }, ...turns(40)]);
    await compactor().compact(ref, request(16_000));
    expect((await contextOf(store)).thinkingLevel).toBe("high");
  });

  it("builds each summary on the one before: ten in a row lose nothing planted", async () => {
    await begin(store, []);
    // What a model is meant to do: it keeps the facts of the summary before and adds those of the text.
    const model = summarizer(({ text, previousSummary }) => {
      const facts = `${previousSummary ?? ""}\n${text}`.match(/FACT-\d+/g) ?? [];
      return `Known so far: ${[...new Set(facts)].join(", ")}.`;
    });
    const planted: string[] = [];
    for (let round = 0; round < 10; round++) {
      planted.push(`FACT-${round}`);
      await store.append(ref, [user(`Remember FACT-${round}.`), assistant("I will."), ...turns(20, round * 20)]);
      const summarizers = round % 4 === 3 ? [failing] : [model];
      const result = await compactor({ summarizers }).compact(ref, request(8000));
      expect(result.kind).toBe("compacted");
      const visible = JSON.stringify((await contextOf(store)).messages);
      // A stub keeps what was known; what it took out itself waits for its retry.
      const known =
        round % 4 === 3 ? planted.slice(0, -1) : planted.filter((fact) => fact !== "FACT-3" && fact !== "FACT-7");
      for (const fact of known.filter((one) => one !== "FACT-3" && one !== "FACT-7")) expect(visible).toContain(fact);
    }
    expect((await store.load(ref))?.entry.compactionCount).toBe(10);
    expect(Object.keys(readRetries((await store.load(ref))?.entry ?? { sessionId: "" }))).toHaveLength(2);
  });
});
