import { runSteps } from "@throughline/core/internal";
import { describe, expect, it } from "vitest";
import { buildContext } from "@throughline/history";
import { historyTargets } from "../src/history-targets.ts";
import { MessageOrigins } from "../src/message-origins.ts";
import { renderSteps } from "../src/replay-history.ts";
import { assistant, call, compaction, result, storedRecords, text, user, type RecordSketch } from "./stored-records.ts";

const targets = [...historyTargets.values()].map((target) => [target.name, target] as const);
/** These APIs have a message for each result. */
const apart: ReadonlySet<string> = new Set(["openai", "openai-responses", "mistral", "ollama"]);
const image = { type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" };

describe.each(targets)("where messages come from, for %s", (name, target) => {
  const traced = (sketches: readonly RecordSketch[]): { readonly messages: string[]; readonly ids: string[] } => {
    const origins = new MessageOrigins();
    const context = buildContext(storedRecords(sketches));
    const { messages } = runSteps(renderSteps(context, target.mapping, {}, origins));
    expect(messages).toEqual(target.render(context).messages);
    const ids = origins.messages.map((parts) => parts.map(({ recordId, rule }) => recordId ?? rule ?? "?").join(" "));
    return { messages: messages.map((message) => JSON.stringify(message)), ids };
  };

  it("each message has the records whose words it holds, and no other", () => {
    const sketches = [
      user("word1"),
      assistant([text("word2"), call("t1"), call("t2")], { stopReason: "toolUse" }),
      result("t1", "word3"),
      result("t2", "word4"),
      user("word5"),
      user("word6"),
      assistant("word7"),
      assistant("word8"),
      user([text("word9"), image]),
      assistant([call("t3")], { stopReason: "toolUse" }),
      result("t3", [text("word11"), image]),
      user("word12"),
    ];
    const { messages, ids } = traced(sketches);
    expect(ids).toHaveLength(messages.length);
    for (const [at, message] of messages.entries()) {
      const held = [...message.matchAll(/word(\d+)/g)].map(([, number]) => `r${number}`);
      // An image that stands behind its result, and a call, are parts of records without a word in this message.
      const own = (ids[at] ?? "").split(" ").filter((id) => held.includes(id) || !/^r(2|10|11)$/.test(id));
      expect(
        [...new Set(own)].filter((id) => /^r\d/.test(id)),
        message,
      ).toEqual([...new Set(held)]);
    }
  });

  it("a result has its record where it is a message, also beside one that was made", () => {
    const { ids } = traced([
      user("a"),
      assistant([call("t1"), call("t2"), call("t3")], { stopReason: "toolUse" }),
      result("t1"),
      result("t3"),
      user("b"),
    ]);
    const answers = ["r3", "result-synthesized", "r4"];
    const flat = ids.flatMap((parts) => parts.split(" "));
    expect(flat.filter((id) => answers.includes(id)).toSorted()).toEqual(answers.toSorted());
    if (apart.has(name)) for (const id of answers) expect(ids).toContain(id);
  });

  it("a summary has its compaction, and what no record holds has a rule", () => {
    const { ids } = traced([user("a"), assistant("b"), user("c"), assistant("d"), compaction("r4"), user("e")]);
    expect(ids[0]).toContain("r5");
    expect(ids.join(" ")).toMatch(/r4.* r6$/);
    const { ids: begun } = traced([assistant("b"), user("c")]);
    if (target.mapping.rules.beginsWithUser) expect(begun[0]).toBe("bootstrap-added");
    expect(begun.slice(-2)).toEqual(["r1", "r2"]);
  });
});
