import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { SessionStore } from "@throughline/core";
import { createCompactor, type CompactionEvent } from "@throughline/compaction";
import { begin, contextOf, places, ports, ref, request, summarizer, turns, type Place } from "./scene.ts";

describe.each(places)("compaction over store-$name", ({ create }) => {
  let place: Place;
  let store: SessionStore;
  beforeEach(() => {
    place = create();
    store = place.open();
  });
  afterEach(async () => {
    await store.close();
    place.remove();
  });

  it("puts the summary into the very next request, and into one after a restart [CMP-04, CMP-05, CMP-23]", async () => {
    await begin(store, turns(40));
    const events: CompactionEvent[] = [];
    const model = summarizer("They read forty files and found nothing wrong so far.");
    const compactor = createCompactor({
      store,
      ...ports,
      summarizers: [model],
      onEvent: (event) => events.push(event),
    });
    const result = await compactor.compact(ref, request(16_000));
    expect(result).toMatchObject({ kind: "compacted", source: "model", provider: "scripted", needsRetry: false });
    expect(model.requests).toHaveLength(1);
    const context = await contextOf(store);
    expect(context.messages[0]).toMatchObject({ role: "compactionSummary" });
    expect(JSON.stringify(context.messages[0]?.content)).toContain("They read forty files");
    expect(context.messages[1]?.role).toBe("user");
    const state = await store.load(ref);
    expect(state?.entry).toMatchObject({ compactionCount: 1, totalTokensFresh: false });
    await store.close();
    store = place.open();
    expect(await contextOf(store)).toEqual(context);
    expect(events.map(({ name }) => name)).toEqual(["compaction.planned", "compaction.applied"]);
  });
});
