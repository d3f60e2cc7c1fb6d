import { describe, expect, it } from "vitest";
import { IdList, IdNumbers } from "../src/packed-ids.ts";

/** UUIDs of one form, and what only looks like one. */
function idOf(count: number): string {
  const hex = count.toString(16).padStart(12, "0");
  switch (count % 7) {
    case 0:
      return `${hex.slice(4)}-0000-4000-8000-000000000000`;
    case 1:
      return `00000000-0000-4000-8000-${hex}`.toUpperCase();
    case 2:
      return `00000000-0000-4000-8000-${hex}~d2`;
    case 3:
      return `00000000x0000-4000-8000-${hex}`;
    default:
      return `019e03b2-11a2-7320-9098-${hex}`;
  }
}

describe("ids that are kept in few bytes", () => {
  it("have the numbers that a map gives them, whatever they are", { tags: ["slow"] }, () => {
    const [numbers, map] = [new IdNumbers(), new Map<string, number>()];
    for (let count = 0; count < 40_000; count++) {
      // Every third is given another number later.
      const id = idOf(count % 3 === 2 ? count >> 1 : count);
      expect(numbers.get(id)).toBe(map.get(id));
      numbers.set(id, count);
      map.set(id, count);
    }
    for (const [id, number] of map) expect(numbers.get(id)).toBe(number);
    for (const other of ["", "x", "00000000-0000-4000-8000-00000000000g", idOf(-5)])
      expect([other, numbers.has(other)]).toEqual([other, map.has(other)]);
  });

  it("are given back as they were, in their order", () => {
    const numbers = new IdNumbers();
    const list = new IdList(numbers);
    const ids = Array.from({ length: 5000 }, (_, count) => idOf(count));
    for (const [count, id] of ids.entries()) {
      numbers.set(id, count);
      list.push(id);
    }
    list.replaceLast("~d1");
    expect(ids.map((_, number) => list.at(number))).toEqual([...ids.slice(0, -1), "~d1"]);
    list.replaceLast(ids[7] ?? "");
    expect([list.at(4999), list.at(5000), list.at(-1), list.length]).toEqual([ids[7], null, null, 5000]);
  });

  it("are found where so many differ in one word that the way to some is too long", { tags: ["slow"] }, () => {
    const numbers = new IdNumbers();
    const ids = Array.from(
      { length: 200_000 },
      (_, count) => `${(count * 2048).toString(16).padStart(8, "0")}-0000-4000-8000-000000000000`,
    );
    for (const [count, id] of ids.entries()) numbers.set(id, count);
    expect(ids.every((id, count) => numbers.get(id) === count)).toBe(true);
  });
});
