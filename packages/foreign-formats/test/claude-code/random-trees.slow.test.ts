import { describe, expect, it } from "vitest";
import { testSize } from "../../../../tools/test-size.ts";
import { jsonLines, readUnits, refusals } from "../read-units.ts";
import { RandomTree } from "./random-trees.ts";
import { bySdk, byUs } from "./sdk-reader.ts";

/**
 * The messages as a request has them. Of a reply that is kept from its middle on, the program puts the beginning behind the
 * end; and it shows results without their calls, which no request may hold.
 */
function inRequest(messages: readonly string[]): readonly string[] {
  const calls = new Set<string>();
  const runs: string[][] = [];
  let before = "";
  for (const one of messages) {
    const [, called] = /^assistant: \?(\w+)$/.exec(one) ?? [];
    if (called !== undefined) calls.add(called);
    const [, answered] = /^user: of (\w+)$/.exec(one) ?? [];
    if (answered !== undefined && !calls.has(answered)) continue;
    const kind = answered !== undefined ? "result" : (one.split(":", 1)[0] ?? "");
    if (kind === before && kind !== "user") runs.at(-1)?.push(one);
    else runs.push([one]);
    before = kind;
  }
  return runs.flatMap((run) => run.toSorted());
}

const count: number = testSize({ short: 50, long: 10_000 });

describe("a session of Claude Code with compactions, rewinds and sub-agents", () => {
  it(`has the messages that the Claude Agent SDK reads, in ${count} trees`, { timeout: 600_000 }, async () => {
    let [compacted, equal] = [0, 0];
    for (let seed = 1; seed <= count; seed++) {
      const { lines } = new RandomTree(seed);
      const theirs = await bySdk(lines);
      const session = readUnits("claude-code", jsonLines(...lines));
      const ours = byUs(session);
      expect([seed, inRequest(ours)]).toEqual([seed, inRequest(theirs)]);
      expect([seed, refusals(session)]).toEqual([seed, []]);
      if (theirs.some((one) => one.startsWith("user: Summary"))) compacted += 1;
      if (JSON.stringify(ours) === JSON.stringify(theirs)) equal += 1;
    }
    // Most have a compaction in their context, and nearly all are the same also beyond what a request holds.
    expect([compacted > count / 2, equal > count * 0.9]).toEqual([true, true]);
  });
});
