import type { BaseMessage } from "@langchain/core/messages";
import { describe, expect, it } from "vitest";
import type { AppendDraft, RecordPage } from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import { aroundCalls } from "@throughline/test-kit";
import { testSize } from "../../../tools/test-size.ts";
import { createCheckpointSaver } from "../src/checkpoint-saver.ts";
import { ai, at, human, put, type Config } from "./scripted.ts";

interface Cost {
  calls: number;
  readRecords: number;
  writtenRecords: number;
  writtenBytes: number;
}

/** Notes what a store is asked for. */
function counted(cost: Cost): ReturnType<typeof createMemoryStore> {
  return aroundCalls(createMemoryStore(), ({ name, args, run }) => {
    cost.calls += 1;
    if (name === "append") {
      const drafts = args[1] as readonly AppendDraft[];
      cost.writtenRecords += drafts.length;
      cost.writtenBytes += JSON.stringify(drafts).length;
    }
    if (name !== "read") return run();
    return (async function* () {
      for await (const page of run() as AsyncIterable<RecordPage>) {
        cost.readRecords += page.records.length;
        yield page;
      }
    })();
  }) as ReturnType<typeof createMemoryStore>;
}

describe("the cost of a step", () => {
  it("is the same however many checkpoints there are", async () => {
    const total: Cost = { calls: 0, readRecords: 0, writtenRecords: 0, writtenBytes: 0 };
    const saver = createCheckpointSaver({ store: counted(total) });
    // A graph that keeps the last messages: LangGraph's serializer writes the whole list in each step.
    let messages: readonly BaseMessage[] = [];
    let config: Config = at("t");
    const step = async (number: number): Promise<void> => {
      await saver.getTuple(at("t"));
      const pair = [human(`h${100_000 + number}`, "x".repeat(200)), ai(`a${100_000 + number}`, "y".repeat(500))];
      messages = [...messages, ...pair].slice(-20);
      await saver.putWrites(
        config.configurable?.["checkpoint_id"] === undefined ? at("t", "none") : config,
        [["messages", pair]],
        "task",
      );
      config = await put(saver, config, { messages, n: 100_000 + number }, { version: 100_000 + number });
    };
    const costs: Cost[] = [];
    let done = 0;
    for (const size of testSize({ short: [20, 200, 600], long: [20, 1000, 10_000] })) {
      for (; done < size; done++) await step(done);
      const before = { ...total };
      for (const end = done + 100; done < end; done++) await step(done);
      costs.push({
        calls: total.calls - before.calls,
        readRecords: total.readRecords - before.readRecords,
        writtenRecords: total.writtenRecords - before.writtenRecords,
        writtenBytes: total.writtenBytes - before.writtenBytes,
      });
    }
    const [first, ...later] = costs as [Cost, ...Cost[]];
    for (const cost of later) {
      expect([cost.calls, cost.readRecords, cost.writtenRecords]).toEqual([
        first.calls,
        first.readRecords,
        first.writtenRecords,
      ]);
      expect(cost.writtenBytes / first.writtenBytes).toBeLessThan(1.02);
    }
    expect(first.readRecords).toBe(0);
  }, 600_000);

  it("grows with what is new, not with what is there", async () => {
    const sizes = await Promise.all(
      [50, 200].map(async (turns) => {
        const total: Cost = { calls: 0, readRecords: 0, writtenRecords: 0, writtenBytes: 0 };
        const saver = createCheckpointSaver({ store: counted(total) });
        let messages: readonly BaseMessage[] = [];
        let config: Config = at("t");
        for (let turn = 0; turn < turns; turn++) {
          messages = [...messages, human(`h${1000 + turn}`, "x".repeat(200)), ai(`a${1000 + turn}`, "y".repeat(500))];
          config = await put(saver, config, { messages }, { version: 1000 + turn });
        }
        return total.writtenBytes / turns;
      }),
    );
    expect((sizes[1] ?? 0) / (sizes[0] ?? 1)).toBeLessThan(1.05);
  });
});
