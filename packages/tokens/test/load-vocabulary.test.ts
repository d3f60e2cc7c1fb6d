import { describe, expect, it } from "vitest";
import { loadOnce, loadVocabulary } from "../src/load-vocabulary.ts";

describe("loadVocabulary", () => {
  it("gives every caller in the process the same counter", async () => {
    const [one, other] = await Promise.all([loadVocabulary("claude"), loadVocabulary("claude")]);
    expect(other).toBe(one);
    expect(await loadVocabulary("claude")).toBe(one);
    expect(await loadVocabulary("cl100k_base")).not.toBe(one);
  });

  it("loads again after a load that failed", async () => {
    let loads = 0;
    const load = loadOnce(async () => {
      loads += 1;
      if (loads === 1) throw new Error("the file is not there yet");
      return (text) => text.length;
    });
    await expect(load("claude")).rejects.toThrow("not there yet");
    expect((await load("claude"))("abc")).toBe(3);
    await load("claude");
    expect(loads).toBe(2);
  });
});
