import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { buildContext } from "@throughline/history";
import { historyTargets } from "../src/history-targets.ts";
import { renderAnthropic, validateAnthropic } from "@throughline/history/anthropic";
import type { AnthropicRenderOptions } from "../src/render-anthropic.ts";
import { createProviderSimulator } from "@throughline/testing";
import { randomLog } from "./random-logs.ts";
import { assistant, call, compaction, result, storedRecords, text, user, type RecordSketch } from "./stored-records.ts";
import { accepted } from "./third-reading.ts";
import { runs } from "./test-runs.ts";

const carryBlocks: ReadonlySet<string> = new Set(["compaction"]);
const ownBlock = { type: "compaction", content: "What was said.", signature: "c2ln", encrypted_content: null };
const signed = { api: "anthropic-messages", block: ownBlock };
const withOwn = (more: object = {}, kept = "r3"): RecordSketch =>
  compaction(kept, "What was said.", { details: { signed: { ...signed, ...more } } });
const render = (sketches: readonly RecordSketch[], options: AnthropicRenderOptions = {}): readonly unknown[] => {
  const { messages } = renderAnthropic(buildContext(storedRecords(sketches)), options);
  const { carryBlocks: blockTypes, systemMessages } = options;
  const allowed = { allowsSystem: systemMessages === "inline", ...(blockTypes === undefined ? {} : { blockTypes }) };
  expect(validateAnthropic(messages, allowed)).toEqual([]);
  return messages;
};
const said = (role: string, words: string): object => ({ role, content: [text(words)] });

describe("a summary that the provider signed", () => {
  const talk = [user("one"), assistant("two"), user("three"), assistant("four"), user("five")];

  it("goes first and as it came, where the caller sends its header", () => {
    const messages = render([...talk, withOwn()], { carryBlocks });
    expect(messages[0]).toEqual({ role: "assistant", content: [ownBlock] });
    expect(messages[1]).toEqual(said("user", "three"));
  });

  it("is text for everybody else, and once an edit has changed it", () => {
    const summary = said("user", "[Previous conversation summary]\nWhat was said.");
    expect(render([...talk, withOwn()])[0]).toEqual(summary);
    expect(render([...talk, withOwn({ api: "openai-responses" })], { carryBlocks })[0]).toEqual(summary);
    const edit = { type: "context_edit", targetId: "r6", replacement: { content: "Otherwise." } };
    expect(JSON.stringify(render([...talk, withOwn(), edit], { carryBlocks }))).toContain("Otherwise.");
    for (const target of historyTargets.values()) {
      const { messages } = target.render(buildContext(storedRecords([...talk, withOwn()])));
      expect(target.validate(messages), target.name).toEqual([]);
      expect(JSON.stringify(messages), target.name).toContain("What was said.");
    }
  });

  it("is followed by a user message, whatever is kept", () => {
    const messages = render([...talk, withOwn({}, "r4")], { carryBlocks });
    expect(messages.map((message) => (message as { role: string }).role)).toEqual([
      "assistant",
      "user",
      "assistant",
      "user",
    ]);
    expect(render([...talk.slice(0, 4), withOwn({}, "r5")], { carryBlocks }).at(-1)).toMatchObject({ role: "user" });
  });

  it("stands in its place where it came inside a reply, and is named where it cannot go", () => {
    const reply = assistant([ownBlock, text("and on")]);
    expect(render([user("one"), reply, user("two")], { carryBlocks })[1]).toEqual({
      role: "assistant",
      content: [ownBlock, text("and on")],
    });
    const context = buildContext(storedRecords([user("one"), reply, user("two")]));
    expect(renderAnthropic(context).repairs).toContainEqual({
      rule: "unknown-block-replaced",
      recordId: "r2",
      before: "compaction",
      after: "[block of type compaction left out]",
    });
    const empty = assistant([{ ...ownBlock, content: "" }, text("and on")]);
    expect(JSON.stringify(render([user("one"), empty, user("two")], { carryBlocks }))).toContain("left out");
  });

  it("is taken by the simulator with its header and refused without", async () => {
    await using simulator = createProviderSimulator({ fallback: () => "Yes." });
    await simulator.start();
    const body = { model: "claude-opus-5", max_tokens: 100, messages: render([...talk, withOwn()], { carryBlocks }) };
    await expect(accepted(simulator, "/v1/messages", body)).rejects.toThrow("'compaction'");
    const answer = await accepted(simulator, "/v1/messages", body, { "anthropic-beta": "compact-2026-09-04" });
    expect(answer["type"]).toBe("message");
  });
});

describe("what other programs leave in a log", () => {
  it("keeps a block that may stand in a result alone out of the message when its result is moved or is an error", () => {
    const reference = { type: "tool_reference", tool_name: "read" };
    const failed = result("t1", [text("no"), reference], { isError: true });
    const messages = render([user("go"), assistant([call("t1")]), failed]);
    expect(JSON.stringify(messages)).toContain("[block of type tool_reference left out]");
    const orphan = [user("go"), result("t9", [reference]), user("on")];
    expect(JSON.stringify(render(orphan, { orphanResults: "text" }))).toContain(
      "[block of type tool_reference left out]",
    );
    expect(JSON.stringify(render([user("go"), assistant([call("t1")]), result("t1", [reference])]))).toContain(
      "tool_name",
    );
  });

  it("takes every reply at the end away where that is asked for, merged or not", () => {
    const context = buildContext(storedRecords([user("go"), assistant("one"), assistant("two")]));
    for (const { name, render: renderFor, validate } of historyTargets.values()) {
      const { messages } = renderFor(context, { trailingAssistant: "remove" });
      expect(validate(messages), name).toEqual([]);
      expect(JSON.stringify(messages), name).not.toMatch(/one|two/);
    }
  });

  it("signs a call for Gemini unless the model is known to ask for no signature", () => {
    const context = buildContext(storedRecords([user("go"), assistant([call("t1")]), result("t1")]));
    const sentTo = (modelId: string | null): string => {
      const target = modelId === null ? null : { provider: "google", modelId };
      return JSON.stringify(historyTargets.get("gemini")?.render(context, { target }).messages);
    };
    expect(sentTo(null)).toContain("skip_thought_signature_validator");
    expect(sentTo("gemini-3-pro")).toContain("skip_thought_signature_validator");
    expect(sentTo("gemini-2.5-pro")).not.toContain("thoughtSignature");
  });

  it("asks something although the log holds instructions alone", () => {
    const system: RecordSketch = { type: "message", message: { role: "system", content: "Be brief." } };
    expect(render([system], { systemMessages: "inline" })).toMatchObject([{ role: "system" }, { role: "user" }]);
  });
});

describe("system messages inside the list and summaries of the provider's own", () => {
  it("leave any log valid, wherever they stand", () => {
    fc.assert(
      fc.property(randomLog, fc.boolean(), (records, isOwn) => {
        const context = buildContext(records);
        const options = isOwn
          ? { systemMessages: "inline" as const, carryBlocks }
          : { systemMessages: "inline" as const };
        const { messages } = renderAnthropic(context, options);
        const blockTypes = isOwn ? carryBlocks : new Set<string>();
        if (messages.length > 0) expect(validateAnthropic(messages, { allowsSystem: true, blockTypes })).toEqual([]);
      }),
      runs(400),
    );
  });
});
