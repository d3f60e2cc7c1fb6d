import { nearestName } from "../src/nearest-name.ts";
import { describe, expect, it } from "vitest";

describe("the nearest of the known names", () => {
  it.each([
    ["log-level", "logLevel"],
    ["Store", "store"],
    ["timeout", "timeoutMs"],
    ["colour", "color"],
    ["agnet", "agent"],
    ["zzz", null],
    ["", null],
    ["a".repeat(1_000_000), null],
  ])("of %.20s is %s", (name, nearest) => {
    expect(nearestName(name, ["store", "agent", "logLevel", "color", "timeoutMs"])).toBe(nearest);
  });

  it("is the one with the fewest edits, and the first of several", () => {
    expect(nearestName("mode", ["model", "node", "mode2", "made"])).toBe("model");
    expect(nearestName("maxToken", ["maxChars", "maxTokens"])).toBe("maxTokens");
    expect(nearestName("system", ["sytem", "system"])).toBe("system");
  });

  it("keeps to the given limits", () => {
    expect(nearestName("mesage", ["message"], { maxEdits: 1 })).toBe("message");
    expect(nearestName("msage", ["message"], { maxEdits: 1 })).toBeNull();
    expect(nearestName("messa", ["message"], { maxEdits: 1 })).toBeNull();
    expect(nearestName("swap", ["sawp"], { maxEdits: 1 })).toBe("sawp");
    expect(nearestName("lbel", ["label"], { maxEdits: 1, minLength: 5 })).toBeNull();
    expect(nearestName("Key", ["key"], { maxEdits: 1, minLength: 5 })).toBe("key");
    expect(nearestName("customMessage", ["custom_message"], { maxEdits: 1, exactCase: true })).toBeNull();
  });
});
