import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { buildContext, createHistory } from "@throughline/history";
import { historyTargets } from "../src/history-targets.ts";
import type { AnthropicMessage } from "../src/render-anthropic.ts";
import type { GeminiContent } from "../src/render-gemini.ts";
import type { HistoryWork } from "../src/create-history.ts";
import type { HistoryTarget } from "@throughline/history";
import { randomLog, validLog } from "./random-logs.ts";
import { assistant, call, compaction, result, storedRecords, text, user, type RecordSketch } from "./stored-records.ts";
import { runs } from "./test-runs.ts";

const targets = [...historyTargets.values()].map((target) => [target.name, target] as const);

describe.each(targets)("a history that grows, for %s", (_name, target) => {
  it("gives after every record what building it from all records gives", { tags: ["slow"] }, () => {
    fc.assert(
      fc.property(fc.oneof(randomLog, randomLog, validLog), (records) => {
        const history = createHistory(target);
        for (const [index, record] of records.entries()) {
          history.append([record]);
          const context = buildContext(records.slice(0, index + 1));
          expect(history.context(), `context after ${index + 1}`).toEqual({ ...context, cut: null, truncations: [] });
          expect(history.render(), `messages after ${index + 1}`).toEqual(target.render(context));
        }
      }),
      runs(75),
    );
  });

  it("shares its beginning with the renderings before and after, which stay as they were", () => {
    fc.assert(
      fc.property(fc.oneof(randomLog, validLog), (records) => {
        const history = createHistory(target, { system: "Be brief." });
        const seen: (readonly [() => unknown, string])[] = [];
        for (const [index, record] of records.entries()) {
          history.append([record]);
          const shared = history.renderShared();
          const { first, settled, settledCount, tail, system } = shared;
          const whole = (): unknown => [system, ...first, ...settled.slice(0, settledCount), ...tail];
          const expected = target.render(buildContext(records.slice(0, index + 1)), { system: "Be brief." });
          expect(whole()).toEqual([expected.system, ...expected.messages]);
          seen.push([
            () => [whole(), shared.repairs, [...shared.callIds]],
            JSON.stringify([whole(), expected.repairs, [...expected.callIds]]),
          ]);
        }
        // Looked at again after all that came later.
        for (const [now, then] of seen) expect(JSON.stringify(now())).toBe(then);
      }),
      runs(30),
    );
  });

  it("is not touched by how often it is asked", () => {
    fc.assert(
      fc.property(randomLog, fc.array(fc.boolean(), { minLength: 40, maxLength: 40 }), (records, asked) => {
        const history = createHistory(target, { system: "Be brief.", orphanResults: "text" });
        for (const [index, record] of records.entries()) {
          history.append([record]);
          if (asked[index] === true) history.render();
        }
        const options = { system: "Be brief.", orphanResults: "text" } as const;
        expect(history.render()).toEqual(target.render(buildContext(records), options));
      }),
      runs(75),
    );
  });
});

function step(index: number): RecordSketch[] {
  return [assistant([text(`step ${index}`), call(`t${index}`)], { stopReason: "toolUse" }), result(`t${index}`)];
}

/** A turn of so many steps, then what one more step costs. */
function costOfNext(target: HistoryTarget, steps: number, next: (index: number) => RecordSketch[]): HistoryWork {
  const sketches = [user("go"), ...Array.from({ length: steps }, (_, index) => next(index)).flat()];
  const all = storedRecords([...sketches, ...next(steps)]);
  const history = createHistory(target);
  history.append(all.slice(0, sketches.length));
  history.render();
  const before = history.work;
  history.append(all.slice(sketches.length));
  history.renderShared();
  const { work } = history;
  return {
    recordsRead: work.recordsRead - before.recordsRead,
    messagesCleaned: work.messagesCleaned - before.messagesCleaned,
    itemsPaired: work.itemsPaired - before.itemsPaired,
    turnsMapped: work.turnsMapped - before.turnsMapped,
    messagesListed: work.messagesListed - before.messagesListed,
  };
}

describe("the next call", () => {
  const kinds: readonly (readonly [string, (index: number) => RecordSketch[]])[] = [
    ["steps of one long turn", step],
    ["calls without words", (index) => [assistant([call(`t${index}`)]), result(`t${index}`)]],
    ["turns", (index) => [user(`ask ${index}`), ...step(index), assistant([text("done")])]],
    ["one id again and again", (index) => [user(`ask ${index}`), assistant([call("c0", { index })]), result("c0")]],
    ["calls that are never answered", (index) => [user(`ask ${index}`), assistant([call(`t${index}`)])]],
  ];

  it.each(kinds)("costs as much after 10, 1,000 and 10,000 records: %s", { tags: ["slow"] }, (_name, next) => {
    const records = next(0).length;
    for (const [name, target] of historyTargets) {
      // The counting is the same for all; two that differ most are counted at full length.
      const longest = name === "anthropic" || name === "mistral" ? 10_000 : 2000;
      const costs = [10, 1000, longest].map((count) => costOfNext(target, Math.ceil(count / records), next));
      expect(costs[1], name).toEqual(costs[0]);
      expect(costs[2], name).toEqual(costs[0]);
      expect(costs[0]?.recordsRead, name).toBe(records);
      expect(costs[0]?.itemsPaired, name).toBeLessThanOrEqual(records * 4 + 4);
      expect(costs[0]?.messagesListed, name).toBeLessThanOrEqual(records * 3 + 4);
    }
  });

  it("costs the whole once after a compaction, and its own records again after that", () => {
    const target = historyTargets.get("anthropic") as HistoryTarget;
    const log = [user("go"), ...Array.from({ length: 500 }, (_, index) => step(index)).flat(), compaction("r990")];
    const records = storedRecords([...log, ...step(500), ...step(501)]);
    const history = createHistory(target);
    const costs: number[] = [];
    for (const [from, to] of [
      [0, 1001],
      [1001, 1002],
      [1002, 1004],
      [1004, 1006],
    ] as const) {
      const before = history.work.recordsRead;
      history.append(records.slice(from, to));
      history.render();
      costs.push(history.work.recordsRead - before);
    }
    expect(costs).toEqual([1001, 1002, 2, 2]);
  });

  it("goes on from where the head was moved to", () => {
    const target = historyTargets.get("anthropic") as HistoryTarget;
    const records = storedRecords([user("one"), assistant([text("a")]), user("two"), assistant([text("b")])]);
    const history = createHistory(target);
    history.append(records);
    history.moveHead("r2");
    expect(history.render()).toEqual(target.render(buildContext(records, { headId: "r2" })));
    const more = storedRecords([user("three", { parentId: "r2" })], 5);
    history.append(more);
    expect(history.render()).toEqual(target.render(buildContext([...records, ...more])));
    history.moveHead(null);
    expect(history.render().messages).toEqual([]);
  });
});

describe("a history by the name of its provider", () => {
  const log = storedRecords([user("hi")]);

  it("renders what the target of that name does, typed for it", () => {
    const anthropic = createHistory("anthropic");
    anthropic.append(log);
    const messages: AnthropicMessage[] = anthropic.render().messages;
    expect(messages).toEqual([{ role: "user", content: [{ type: "text", text: "hi" }] }]);
    const gemini = createHistory("gemini");
    gemini.append(log);
    const contents: GeminiContent[] = gemini.render().messages;
    expect(contents).toEqual([{ role: "user", parts: [{ text: "hi" }] }]);
    const developer = createHistory("openai", { system: "Be brief.", systemRole: "developer" });
    expect(developer.render().messages).toEqual([{ role: "developer", content: "Be brief." }]);
    for (const [name, target] of historyTargets) {
      const history = createHistory(name);
      history.append(log);
      expect(history.render().messages).toEqual(target.render(buildContext(log)).messages);
    }
    expect(historyTargets.size).toBe(7);
  });

  it.each(["antropic", "", null, undefined, 5])("refuses the name %j", (name) => {
    expect(() => createHistory(name as "anthropic")).toThrow(
      expect.objectContaining({
        code: "INPUT_INVALID",
        message: expect.stringContaining('one of "anthropic"') as string,
      }),
    );
  });
});
