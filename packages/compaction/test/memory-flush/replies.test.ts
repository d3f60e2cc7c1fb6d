import { describe, expect, it } from "vitest";
import { isMemoryPath, observeFlush } from "../../src/memory-flush/observe-flush.ts";
import { isSilentReply, mayBecomeSilent } from "../../src/memory-flush/silent-reply.ts";

describe("a reply to a flush", () => {
  it("is hidden when it is the token or begins with it, and never because the token is in it", () => {
    for (const silent of ["NO_REPLY", "  NO_REPLY\n", "NO_REPLY.", "NO_REPLY nothing to store"])
      expect(isSilentReply(silent)).toBe(true);
    for (const shown of [
      "",
      "I replied NO_REPLY.",
      "NO_REPLYING",
      "no_reply",
      "NO_REPLY_TOKEN is a constant",
      "**NO_REPLY**",
      "Done. NO_REPLY",
    ]) {
      expect(isSilentReply(shown)).toBe(false);
    }
  });

  it("is held back while it may still become silent", () => {
    expect(["", " NO", "NO_REPLY", "NO_REPLY, done"].every(mayBecomeSilent)).toBe(true);
    expect(["NOT", "Yes", "NO_REPLYING"].some(mayBecomeSilent)).toBe(false);
  });
});

describe("what the agent wrote", () => {
  const write = (path: string, name = "write"): Parameters<typeof observeFlush>[0][number] => ({
    name,
    arguments: { path },
  });

  it("is a memory file under the folder, however its path is written [FLU-06, C32]", () => {
    for (const path of [
      "memory/a.md",
      "./memory/a.md",
      "src/../memory/2026/a.md",
      "/home/me/ws/memory/a.md",
      String.raw`memory\a.md`,
    ]) {
      expect(isMemoryPath(path)).toBe(true);
    }
    for (const path of [
      "memory",
      "memory/",
      "memory/../secrets.md",
      "notmemory/a.md",
      "src/memory/a.md",
      "../memory/a.md",
      "",
    ]) {
      expect(isMemoryPath(path)).toBe(false);
    }
    const root = { workspaceRoot: "/home/me/ws" };
    expect(isMemoryPath("/home/me/ws/memory/a.md", root)).toBe(true);
    expect(isMemoryPath("/home/you/memory/a.md", root)).toBe(false);
    expect(isMemoryPath("notes/a.md", { memoryFolder: "notes" })).toBe(true);
  });

  it("is told apart from any other file, and a write that failed wrote nothing [FLU-06, FLU-08, C32]", () => {
    expect(observeFlush([write("memory/a.md")])).toEqual({ flushActioned: true, flushWrote: true });
    expect(observeFlush([write("src/a.ts", "Edit")])).toEqual({ flushActioned: false, flushWrote: true });
    expect(observeFlush([write("memory/a.md", "read")])).toEqual({ flushActioned: false, flushWrote: false });
    expect(observeFlush([{ ...write("memory/a.md"), isError: true }])).toEqual({
      flushActioned: false,
      flushWrote: false,
    });
    expect(observeFlush([write("memory/a.md", "save")], { writeTools: ["save"] }).flushActioned).toBe(true);
  });
});
