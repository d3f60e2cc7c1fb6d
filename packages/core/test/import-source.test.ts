import { describe, expect, it } from "vitest";
import { entrySourceDigest, importSourceDigest } from "../src/import-source.ts";

describe("the digest of a source", () => {
  it("is that of the format and the id in the entry, in any case of the id", () => {
    const importedFrom = { format: "claude-code", sessionId: "6F1C-A", path: "/a.jsonl" };
    const digest = importSourceDigest({ format: "claude-code", sourceId: "6f1c-a" });
    expect(entrySourceDigest({ sessionId: "s", importedFrom })).toBe(digest);
    expect(digest).toMatch(/^[0-9a-f]{32}$/);
  });

  it("is that of the id for look-ups when the entry states one", () => {
    const importedFrom = { format: "sharegpt", sessionId: "1", sourceId: "/lists/a.json#1" };
    const digest = importSourceDigest({ format: "sharegpt", sourceId: "/lists/a.json#1" });
    expect(entrySourceDigest({ sessionId: "s", importedFrom })).toBe(digest);
  });

  it("is one for all formats that hold the lines of OpenClaw", () => {
    const [first, ...others] = ["openclaw", "openclaw-sqlite", "pi", "claw0", "clawcode", "jsonl"].map((format) =>
      importSourceDigest({ format, sourceId: "a" }),
    );
    for (const other of others) expect(other).toBe(first);
    expect(importSourceDigest({ format: "codex", sourceId: "a" })).not.toBe(first);
  });

  it("differs where format and id meet in another place", () => {
    const one = importSourceDigest({ format: "a", sourceId: 'b","c' });
    const other = importSourceDigest({ format: 'a","b', sourceId: "c" });
    expect(one).not.toBe(other);
  });

  it.each([undefined, null, "codex", 7, {}, { format: "codex" }, { sessionId: "s" }, { format: 1, sessionId: "s" }])(
    "is null for an entry with importedFrom %j",
    (importedFrom) => {
      expect(entrySourceDigest({ sessionId: "s", importedFrom })).toBeNull();
    },
  );
});
