import process from "node:process";
import { afterEach, describe, expect, it } from "vitest";
import type { CompactionEvent } from "@throughline/compaction/internal";
import { createMemoryStore } from "@throughline/store-memory";
import {
  allRecords,
  createWholeTurnFixture,
  key,
  lostMessages,
  places,
  summarizerOf,
  type Place,
  type SummarizerKind,
} from "./whole-turn-fixture.ts";

type Applied = Extract<CompactionEvent, { name: "compaction.applied" }>;

/** Which rungs of the ladder give the summaries. One that cannot make its parts small enough is as good as none. */
const sources: Readonly<Record<SummarizerKind, readonly string[]>> = {
  works: ["model"],
  overflows: ["model", "extractive"],
  fails: ["extractive"],
  hangs: ["extractive"],
  garbage: ["extractive"],
};

/** The larger window with the store that is on disk too takes longer and shows no more; `all` looks at both. */
const isFullRun = process.env["THROUGHLINE_WINDOWS"] === "all";

const casesOf = (store: string): readonly { readonly windowTokens: number; readonly kind: SummarizerKind }[] =>
  (isFullRun || store === "memory" ? [8000, 16_000] : [8000]).flatMap((windowTokens) =>
    (Object.keys(sources) as SummarizerKind[]).map((kind) => ({ windowTokens, kind })),
  );

describe.each(places)("a conversation longer than its window, over store-$name", ({ name, open }) => {
  let place: Place;
  afterEach(() => place.remove());

  it.each(casesOf(name))(
    "of $windowTokens tokens, with a summarizer that $kind: nothing is refused or lost, one call for each need",
    async ({ windowTokens, kind }) => {
      place = open();
      const { store } = place;
      let asked = (): number => 0;
      await using fixture = await createWholeTurnFixture(windowTokens, (simulator) => {
        const made = summarizerOf(kind, simulator);
        ({ asked } = made);
        return { store, summarizers: [made.summarizer], compaction: { deadlineMs: kind === "hangs" ? 30 : 20_000 } };
      });
      await using session = await fixture.sessions.open(key);
      const turns = windowTokens / 250;
      for (let at = 0; at < turns; at++) {
        const turn = await session.runTurn(`Question ${at}: ${"and what about that? ".repeat(30)}`);
        expect(turn.outcome).toBe("done");
        expect(turn.text).not.toBe("");
      }
      const requests = fixture.asked();
      const refused = fixture.simulator.refusals.filter(({ request }) =>
        requests.some(({ number }) => number === request),
      );
      expect(refused).toEqual([]);
      expect(Math.max(...requests.map(({ promptTokens }) => promptTokens))).toBeLessThanOrEqual(windowTokens);
      const applied = fixture.events.filter((event): event is Applied => event.name === "compaction.applied");
      expect(applied.length).toBeGreaterThan(1);
      expect(applied.length).toBeLessThan(turns / 4);
      expect(asked()).toBe(applied.length);
      for (const { source } of applied) expect(sources[kind]).toContain(source);
      expect(applied.every(({ source, needsRetry }) => needsRetry === (source === "extractive"))).toBe(true);
      const records = await allRecords(store);
      expect(lostMessages(records)).toEqual([]);
      expect(records.filter(({ type }) => type === "compaction")).toHaveLength(applied.length);
      expect(session.entry.compactionCount).toBe(applied.length);
    },
    60_000,
  );
});

describe("compaction upon compaction", () => {
  it("over ten of them nothing that was planted is in no summary and no kept message", async () => {
    await using store = createMemoryStore();
    const facts = /fact-\d+ is value-\d+/g;
    await using fixture = await createWholeTurnFixture(8000, () => ({
      store,
      summarizers: [
        {
          // Keeps what it is given: what it is not given is lost.
          summarize: ({ text, previousSummary }) => {
            const known = new Set(`${previousSummary ?? ""}\n${text}`.match(facts));
            return Promise.resolve({
              summary: `Known so far: ${[...known].join(", ")}.`,
              source: "facts",
              usage: null,
            });
          },
        },
      ],
    }));
    await using session = await fixture.sessions.open(key);
    let planted = 0;
    const count = (): number => fixture.events.filter(({ name }) => name === "compaction.applied").length;
    while (count() < 10 && planted < 400) {
      await session.runTurn(`fact-${planted} is value-${planted * 7}. ${"And so on. ".repeat(80)}`);
      planted += 1;
    }
    expect(count()).toBeGreaterThanOrEqual(10);
    const shown = JSON.stringify((await session.messages()).messages);
    for (let at = 0; at < planted; at++) expect(shown).toContain(`fact-${at} is value-${at * 7}`);
    expect(fixture.simulator.refusals).toEqual([]);
  }, 60_000);
});
