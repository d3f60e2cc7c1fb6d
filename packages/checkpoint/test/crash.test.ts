import { afterEach, describe, expect, it } from "vitest";
import { loadExisting, ThroughlineError, type SessionStore } from "@throughline/core";
import { createCheckpointer, listCheckpoints } from "@throughline/checkpoint";
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

/** A store whose process ends at its n-th call: before the call is done or after, and every later one fails. */
function ending(store: SessionStore, calls: number, isDone: boolean): { readonly store: SessionStore; made(): number } {
  let made = 0;
  const gone = (): ThroughlineError => new ThroughlineError("STORE_CLOSED", "the process is gone");
  const handler: ProxyHandler<SessionStore> = {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function" || name === "close" || typeof name === "symbol") return value;
      return (...args: unknown[]) => {
        made++;
        if (made > calls || (made === calls && !isDone)) {
          if (name === "read") throw gone();
          return Promise.reject(gone());
        }
        const result: unknown = Reflect.apply(value, target, args);
        return made < calls || name === "read" ? result : Promise.resolve(result).then(() => Promise.reject(gone()));
      };
    },
  };
  return { store: new Proxy(store, handler), made: () => made };
}

describe.each(places)("a process that ends while it makes a checkpoint, over store-$name", ({ create }) => {
  let place: Place;
  afterEach(() => place.remove());

  it("leaves the old state or the new at every call, and the next one is made in its time [CKP-12, CKP-18]", async () => {
    let calls = 0;
    for (const isDone of [false, true]) {
      for (calls = 1; ; calls++) {
        place = create();
        const clock = new ManualClock();
        const store = place.open();
        await begin(store, [user("Build an importer."), assistant("Which format?"), user("JSON Lines.")]);
        const { head } = await loadExisting(store, ref);
        const broken = ending(store, calls, isDone);
        await createCheckpointer(options(broken.store, clock, [writer(good)])).make(ref, 60_000);
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
        if (broken.made() < calls) break;
        place.remove();
      }
      expect(calls).toBeGreaterThan(5);
    }
  });
});
