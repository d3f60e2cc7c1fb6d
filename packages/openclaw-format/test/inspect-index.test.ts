import { describe, expect, it } from "vitest";
import { inspectIndex } from "../src/inspect-index.ts";

describe("inspectIndex", () => {
  const options = {
    path: "/home/ada/s/sessions.json",
    sessionsDir: "/home/ada/s",
    fileNames: new Set(["a.jsonl", "b.jsonl", "c.jsonl.lock"]),
  };

  it("compares the index with the files beside it", () => {
    const index = {
      "agent:main:a": { sessionId: "a", updatedAt: 1 },
      "agent:main:gone": { sessionId: "gone", updatedAt: 1 },
      "agent:main:far": { sessionId: "a", sessionFile: "/other/machine/a.jsonl" },
      "agent:main:bad": { sessionId: "../x" },
      "agent:main:none": 7,
    };
    const findings = inspectIndex(JSON.stringify(index), options);
    expect(findings.map(({ code, key }) => [code, key]).toSorted()).toEqual([
      ["ENTRY_UNREADABLE", "agent:main:bad"],
      ["ENTRY_UNREADABLE", "agent:main:none"],
      ["SESSION_FILE_FOREIGN", "agent:main:far"],
      ["SESSION_FILE_MISSING", "agent:main:gone"],
      ["SESSION_UNINDEXED", null],
    ]);
  });

  it("says that an index cannot be read", () => {
    expect(inspectIndex("{", options).map(({ code }) => code)).toEqual(["INDEX_UNREADABLE"]);
  });
});
