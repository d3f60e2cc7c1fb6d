import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { createInputHistory } from "../src/chat/input-history.ts";
import { temporaryDirectory } from "./harness.ts";

describe("what was submitted before", () => {
  const directory = temporaryDirectory();
  afterAll(() => directory.remove());

  it("comes back in order, of earlier terminals too, and lies in a file of its owner's", () => {
    const path = join(directory.path, "deep", "history.jsonl");
    const first = createInputHistory(path);
    for (const text of ["one", "two\nlines", "two\nlines", " secret", "", "x".repeat(20_000)]) first.add(text);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const second = createInputHistory(path);
    expect([second.older("unsent"), second.older(""), second.older("")]).toEqual(["two\nlines", "one", null]);
    expect([second.newer(), second.newer(), second.newer()]).toEqual(["two\nlines", "unsent", null]);
  });

  it("survives a file that was cut, and is brought down to what is kept", () => {
    const path = join(directory.path, "long.jsonl");
    mkdirSync(directory.path, { recursive: true });
    const lines = Array.from({ length: 2500 }, (_, index) => JSON.stringify(`line ${index}`));
    writeFileSync(path, `${lines.join("\n")}\n{"no text":1}\n"cut`);
    expect(createInputHistory(path).older("")).toBe("line 2499");
    expect(readFileSync(path, "utf8").trim().split("\n")).toHaveLength(1000);
  });
});
