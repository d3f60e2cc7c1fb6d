import { describe, expect, it } from "vitest";

import { systemRandom, systemRecordIds } from "../src/node/system-ports.ts";
import { createRecordIds } from "../src/record-ids.ts";

function fixedPorts(times: number[], firstCount: number) {
  let index = 0;
  return {
    clock: { nowMs: () => times[Math.min(index++, times.length - 1)] ?? 0, sleep: async () => {} },
    random: { uint32: () => firstCount, uuid: () => "" },
  };
}

describe("createRecordIds", () => {
  it("writes 13 digits of milliseconds and 8 hex digits [C12]", () => {
    expect(systemRecordIds.next()).toMatch(/^\d{13}_[0-9a-f]{8}$/);
  });

  it("sorts in the order of making, over a clock that steps back and a counter that wraps [C12]", () => {
    const ids = createRecordIds(
      fixedPorts([1_706_803_200_005, 1_706_803_200_001, 1_706_803_200_001, 1_706_803_200_001], 0xfffffffd),
    );
    const made = [ids.next(), ids.next(), ids.next(), ids.next()];
    expect(made).toEqual([...made].sort());
    expect(new Set(made).size).toBe(4);
    expect(made[2]).toBe("1706803200006_00000000");
  });

  it("keeps two processes apart in the same millisecond", () => {
    const first = createRecordIds(fixedPorts([1_706_803_200_000], 1));
    const second = createRecordIds(fixedPorts([1_706_803_200_000], 0x80000000));
    const made = Array.from({ length: 1000 }, () => [first.next(), second.next()]).flat();
    expect(new Set(made).size).toBe(made.length);
  });

  it("makes random UUIDs for sessions", () => {
    expect(systemRandom.uuid()).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(systemRandom.uuid()).not.toBe(systemRandom.uuid());
  });
});
