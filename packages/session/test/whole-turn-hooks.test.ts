import { describe, expect, it } from "vitest";
import type { BeforeCloseContext } from "../src/session-options.ts";
import { createScriptedModel } from "./scripted-model.ts";
import { createFixture, key, outline } from "./session-fixture.ts";

describe("before a turn is closed", () => {
  it("the model may be asked again behind its reply, and the entry gets fields with the last append", async () => {
    const script = createScriptedModel();
    script.push({ text: "NO" }, { text: "The answer." });
    const closings: BeforeCloseContext[] = [];
    const { sessions, records } = createFixture({
      script,
      beforeClose: (closing) => {
        closings.push(closing);
        if (closings.length > 1) return { entry: { counted: closings.length } };
        return { askAgain: [{ type: "message", message: { role: "user", content: "And the answer?" } }] };
      },
    });
    await using session = await sessions.open(key);
    const turn = await session.runTurn("What is it?");
    expect(turn.text).toBe("The answer.");
    expect(closings.map(({ outcome }) => outcome)).toEqual(["done", "done"]);
    expect(session.entry["counted"]).toBe(2);
    expect(outline(await records())).toEqual([
      "turn:open",
      "user",
      "assistant:stop",
      "call:answered",
      "user",
      "assistant:stop",
      "call:answered",
      "turn:done",
    ]);
    expect(JSON.stringify(script.requests.at(-1)?.messages)).toContain("And the answer?");
  });

  it("whoever asks again and again is stopped by the limit of calls", async () => {
    const { sessions, model } = createFixture({
      maxSteps: 3,
      beforeClose: () => ({ askAgain: [{ type: "message", message: { role: "user", content: "Again." } }] }),
    });
    await using session = await sessions.open(key);
    expect((await session.runTurn("Hi")).outcome).toBe("done");
    expect(model.requests).toHaveLength(3);
  });
});
