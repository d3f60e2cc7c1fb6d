import { afterEach, describe, expect, it } from "vitest";
import { loadExisting } from "@throughline/core/internal";
import { createCheckpointer, listCheckpoints } from "@throughline/checkpoint";
import { endEverywhere } from "@throughline/test-kit";
import {
  assistant,
  begin,
  good,
  ManualClock,
  options,
  places,
  ref,
  user,
  writer,
  type Place,
} from "./checkpoint-fixture.ts";

describe.each(places)("a process that ends while it makes a checkpoint, over store-$name", ({ create }) => {
  let place: Place;
  afterEach(() => place.remove());

  it(
    "leaves the old state or the new at every call, and the next one is made in its time",
    { tags: ["slow"] },
    async () => {
      const calls = await endEverywhere(async (end) => {
        place = create();
        const clock = new ManualClock();
        const store = place.open();
        await begin(store, [user("Build an importer."), assistant("Which format?"), user("JSON Lines.")]);
        const { head } = await loadExisting(store, ref);
        await createCheckpointer(options(end(store), clock, [writer(good)])).make(ref, 60_000);
        await store.close();
        const again = place.open();
        expect((await loadExisting(again, ref)).head.headId).toBe(head.headId);
        const before = (await listCheckpoints(again, ref)).length;
        expect(before).toBeLessThanOrEqual(1);
        clock.move(1_000_000);
        const later = createCheckpointer(options(again, clock, [writer(good)]));
        await again.append(ref, [user("go on")]);
        expect(await later.make(ref, 61_000)).toMatchObject({ kind: "written" });
        expect(await listCheckpoints(again, ref)).toHaveLength(before + 1);
        await again.close();
        place.remove();
      });
      expect(calls).toBeGreaterThan(5);
    },
  );
});
