import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { describe, expect, it } from "vitest";
import { corpusFiles } from "../corpus-files.ts";
import { jsonLines, readUnits } from "../read-units.ts";
import { call, line, part, prompt, result, text, thought, uuid, type Fields } from "./lines.ts";
import { bySdk, byUs, type Lines } from "./sdk-reader.ts";

const compaction: Lines = [
  line("b1", null, {
    type: "system",
    subtype: "compact_boundary",
    logicalParentUuid: uuid("a2"),
    compactMetadata: {
      trigger: "manual",
      preTokens: 9,
      preservedMessages: { anchorUuid: uuid("s1"), uuids: [uuid("u2"), uuid("a2")] },
    },
  }),
  prompt("s1", "b1", "They spoke.", { isCompactSummary: true, isVisibleInTranscriptOnly: true }),
];

const sessions: readonly (readonly [title: string, lines: Lines])[] = [
  [
    "a tool loop",
    [
      prompt("u1", null, "Hi"),
      part("a1", "u1", "1", thought),
      part("a2", "a1", "1", call("t1")),
      result("r1", "a2", "t1"),
      part("a3", "r1", "2", text("So.")),
    ],
  ],
  [
    "tools side by side",
    [
      prompt("u1", null, "Both."),
      part("a1", "u1", "1", call("t1")),
      part("a2", "a1", "1", call("t2")),
      result("r1", "a1", "t1"),
      result("r2", "a2", "t2"),
      part("a3", "r2", "2", text("Both.")),
    ],
  ],
  [
    "two rewinds and a note behind the end",
    [
      prompt("u1", null, "One."),
      part("a1", "u1", "1", text("Yes.")),
      prompt("u2", "a1", "Wrong."),
      prompt("u3", "a1", "Also wrong."),
      part("a3", "u3", "2", text("No.")),
      prompt("u4", "a1", "Right."),
      line("n1", "u4", { type: "system", subtype: "informational", content: "x" }),
    ],
  ],
  [
    "a compaction that keeps two messages",
    [
      prompt("u1", null, "Long ago."),
      part("a1", "u1", "1", text("Indeed.")),
      prompt("u2", "a1", "Keep this."),
      part("a2", "u2", "2", text("Kept.")),
      ...compaction,
      prompt("u5", "s1", "On."),
      part("a5", "u5", "5", text("Yes.")),
    ],
  ],
  [
    "a sub-agent's lines between those of the session",
    [
      prompt("u1", null, "Go."),
      part("a1", "u1", "1", call("t1")),
      prompt("s1", null, "Search.", { isSidechain: true, agentId: "x" }),
      { ...part("s2", "s1", "2", text("Found.")), isSidechain: true },
      result("r1", "a1", "t1"),
    ],
  ],
  [
    "what was typed while the model was at work",
    [
      prompt("u1", null, "Go."),
      part("a1", "u1", "1", call("t1")),
      result("r1", "a1", "t1"),
      line("q1", "r1", { type: "attachment", attachment: { type: "queued_command", prompt: "Faster." } }),
      part("a2", "q1", "2", text("Yes.")),
    ],
  ],
];

describe("the way that Claude Code's own reader takes through a session", () => {
  it.each(sessions)("is ours: %s", async (_, lines) => {
    const theirs = await bySdk(lines);
    expect(theirs.length).toBeGreaterThan(1);
    expect(byUs(readUnits("claude-code", jsonLines(...lines)))).toEqual(theirs);
  });

  // Files without ids, and those of a sub-agent alone, have no conversation for it.
  it.each(
    corpusFiles("claude-code", ".jsonl").filter(
      (path) => /convo|compacted|session\.jsonl/.test(path) && !path.includes("valid"),
    ),
  )("is ours in %s", async (path) => {
    const text = readFileSync(path, "utf8");
    const lines = text
      .trimEnd()
      .split("\n")
      .map((one) => JSON.parse(one) as Fields);
    const theirs = await bySdk(lines);
    expect({ [basename(path)]: theirs.length }).not.toEqual({ [basename(path)]: 0 });
    expect(byUs(readUnits("claude-code", text))).toEqual(theirs);
  });
});
