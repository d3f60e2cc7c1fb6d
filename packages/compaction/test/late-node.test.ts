import { stoppingStore } from "@throughline/test-kit";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadExisting, resetSession, systemRandom, systemRecordIds } from "@throughline/core/internal";
import type { SessionStore, Summarizer } from "@throughline/core";
import { createCompactor } from "@throughline/compaction";
import { createEntryLease } from "../src/retry-lease.ts";
import { createSummaryRetry } from "../src/retry-summaries.ts";
import { readRetries } from "../src/retry-entry.ts";
import { tokenMeasure } from "../src/compactor.ts";
import type { SummaryRetry } from "../src/retry-summaries.ts";
import { emptyCalibration } from "@throughline/tokens";
import { StoppedClock } from "./stopped-clock.ts";
import {
  allRecords,
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
  type Place,
} from "./compaction-fixture.ts";

const turn = { action: "open", turnId: "t", owner: "o", leaseUntilMs: Date.parse("2099-01-01"), fence: 1 } as const;

describe.each(places)("a node that comes back late to a summary, over store-$name", ({ create }) => {
  let place: Place;
  let stores: readonly [SessionStore, SessionStore];
  let clock: StoppedClock;
  let summaryId: string;
  beforeEach(async () => {
    place = create();
    stores = [place.open(), place.open()];
    clock = new StoppedClock();
    await begin(stores[0], turns(40));
    const made = await createCompactor({ store: stores[0], ...ports, summarizers: [failing] }).compact(
      ref,
      request(16_000),
    );
    summaryId = made.kind === "compacted" ? made.recordId : "";
  });
  afterEach(async () => {
    for (const store of stores) await store.close();
    place.remove();
  });

  function node(store: SessionStore, owner: string, model: Summarizer): SummaryRetry {
    const lease = createEntryLease({ store, clock, owner });
    const measure = tokenMeasure(counter, emptyCalibration);
    return createSummaryRetry({ store, clock, ids: systemRecordIds, summarizers: [model], measure, lease });
  }
  const settled = (): unknown => [{ kind: "settled", summaryId }];
  const quick = (): SummaryRetry => node(stores[1], "quick", summarizer("The quick one read all files."));
  /** What the quick one leaves stays as it is. */
  async function expectUntouched(before: readonly unknown[]): Promise<void> {
    expect(await allRecords(stores[1])).toEqual(before);
    expect(readRetries((await loadExisting(stores[1], ref)).entry)).toEqual({});
    expect(JSON.stringify((await contextOf(stores[1])).messages[0]?.content)).toContain("The quick one");
  }

  it.each([false, true])("with its summarizer's reply adds nothing; a turn is open: %s", async (isTurnOpen) => {
    if (isTurnOpen) await stores[0].append(ref, [user("hello")], { turn });
    const reply = Promise.withResolvers<string>();
    const slow = summarizer(() => reply.promise);
    const run = node(stores[0], "late", slow).run(ref);
    while (slow.requests.length === 0) await new Promise((done) => setImmediate(done));
    clock.atMs += 900_000;
    expect(await quick().run(ref)).toMatchObject([{ kind: "improved", as: isTurnOpen ? "note" : "compaction" }]);
    const before = await allRecords(stores[1]);
    reply.resolve("The late one read all files.");
    expect(await run).toEqual(settled());
    await expectUntouched(before);
  });

  it.each([false, true])("stopped before its append adds nothing; a turn is open: %s", async (isTurnOpen) => {
    if (isTurnOpen) await stores[0].append(ref, [user("hello")], { turn });
    const late = stoppingStore(stores[0]);
    const run = node(late.store, "late", summarizer("The late one read all files.")).run(ref);
    await late.isStopped;
    clock.atMs += 900_000;
    expect(await quick().run(ref)).toMatchObject([{ kind: "improved", as: isTurnOpen ? "note" : "compaction" }]);
    const before = await allRecords(stores[1]);
    late.wake();
    expect(await run).toEqual(settled());
    await expectUntouched(before);
  });

  it("whose summarizer fails leaves nothing to be made again", async () => {
    const reply = Promise.withResolvers<string>();
    const slow = summarizer(() => reply.promise);
    const run = node(stores[0], "late", slow).run(ref);
    while (slow.requests.length === 0) await new Promise((done) => setImmediate(done));
    clock.atMs += 900_000;
    await quick().run(ref);
    const before = await allRecords(stores[1]);
    reply.reject(new TypeError("the connection is gone"));
    expect(await run).toEqual(settled());
    await expectUntouched(before);
  });

  it("after a reset writes nothing of the old session into the new one", async () => {
    await stores[0].append(ref, [user("hello")], { turn });
    const late = stoppingStore(stores[0]);
    const run = node(late.store, "late", summarizer("The late one read all files.")).run(ref);
    await late.isStopped;
    await resetSession(stores[1], ref, { random: systemRandom });
    await stores[1].append(ref, [user("Something else.")]);
    late.wake();
    expect(await run).toEqual(settled());
    expect(await allRecords(stores[1])).toHaveLength(1);
    expect((await loadExisting(stores[1], ref)).entry).not.toHaveProperty("summaryRetries");
  });
});
