import { describe, expect, it } from "vitest";
import { simulatedStore } from "./crash-explorer.ts";
import { lifeOfPartials } from "./crash-steps.ts";
import { createSimulatedDisk } from "./simulated-disk.ts";

describe("the partial of an open reply", () => {
  it("is flushed beside the thread of the caller from its first write on", async () => {
    const disk = createSimulatedDisk();
    const store = simulatedStore(disk);
    const flushes: Record<string, readonly string[]> = {};
    for (const step of lifeOfPartials().slice(0, 4)) {
      const calls: string[] = [];
      disk.onCall = (call, path) => {
        if (call.startsWith("flush") && path.includes("/partials")) calls.push(call);
        return undefined;
      };
      await step.run(store);
      flushes[step.name] = calls;
    }
    await store.close();
    expect(flushes["begin a partial"]).toEqual(["flush", "flushFolderLater"]);
    expect(flushes["continue it"]).toEqual(["flush"]);
  });
});
