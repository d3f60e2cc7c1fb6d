import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { runInSlices, runSteps, sliceSteps, type Steps } from "../src/work-slices.ts";

const count = 4 * sliceSteps;

describe("work in steps", () => {
  it("is the same at once and in slices, and a slice has an end that can be counted", async () => {
    let [sinceTurn, most] = [0, 0];
    let isWatching = true;
    const watch = async (): Promise<void> => {
      for (; isWatching; sinceTurn = 0) await nextTurn();
    };
    function* work(): Steps<number> {
      let sum = 0;
      for (let step = 1; step <= count; step++) {
        sum += step;
        sinceTurn += 1;
        most = Math.max(most, sinceTurn);
        yield;
      }
      return sum;
    }
    expect(runSteps(work())).toBe((count * (count + 1)) / 2);
    expect(most).toBe(count);
    [sinceTurn, most] = [0, 0];
    const watching = watch();
    expect(await runInSlices(work())).toBe((count * (count + 1)) / 2);
    expect(most).toBeLessThanOrEqual(sliceSteps);
    isWatching = false;
    await watching;
  });

  it("ends in slices with the error it ends in at once", async () => {
    const cause = new RangeError("too long");
    function* work(): Steps<never> {
      yield;
      throw cause;
    }
    expect(() => runSteps(work())).toThrow(cause);
    await expect(runInSlices(work())).rejects.toBe(cause);
  });
});
