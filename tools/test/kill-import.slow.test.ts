import { describe, expect, it } from "vitest";
import { runKills } from "../kill-import.ts";

describe("an import, a copy and a sync", () => {
  // `node --conditions=@throughline/source tools/kill-import.ts 30` does it with thirty kills of each.
  it("that are killed while they write, and two imports at once, come to the same as one nobody disturbs", async () => {
    const { problems, kills } = await runKills({ sessions: 30, records: 600 }, 1, () => undefined);
    expect(problems).toEqual([]);
    expect(kills).toBeLessThanOrEqual(3);
  }, 60_000);
});
