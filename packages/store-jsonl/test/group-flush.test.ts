import { describe, expect, it } from "vitest";
import { GroupFlush } from "../src/append-file.ts";

describe("a flush", () => {
  it("never runs beside another of the same file, whenever it is asked for", async () => {
    for (let ticks = 0; ticks < 8; ticks++) {
      let [running, most] = [0, 0];
      const ends: (() => void)[] = [];
      const flush = new GroupFlush(async () => {
        most = Math.max(most, ++running);
        await new Promise<void>((resolve) => void ends.push(resolve));
        running--;
      });
      const waited = [flush.flushed(), flush.flushed()];
      ends.shift()?.();
      for (let tick = 0; tick < ticks; tick++) await Promise.resolve();
      waited.push(flush.flushed());
      const idle = flush.idle();
      for (; flush.isRunning; await new Promise(setImmediate)) ends.splice(0).forEach((end) => end());
      await Promise.all([...waited, idle]);
      expect([ticks, most, running]).toEqual([ticks, 1, 0]);
    }
  });
});
