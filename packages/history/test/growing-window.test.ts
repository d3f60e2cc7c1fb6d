import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { buildContext, createHistory } from "@throughline/history";
import { historyTargets } from "../src/history-targets.ts";
import { limitContext } from "../src/limit-context.ts";
import { truncateResults } from "../src/truncate-results.ts";
import type { HistoryOptions, HistoryTarget } from "@throughline/history";
import type { NeutralMessage } from "../src/neutral-message.ts";
import type { HistoryWindow } from "../src/growing-window.ts";
import { randomLog, validLog } from "./random-logs.ts";
import { openEnd } from "./sent-prefix.ts";
import { assistant, call, result, storedRecords, text, user, type RecordSketch } from "./stored-records.ts";
import { runs } from "./test-runs.ts";

const targets = [...historyTargets.values()].map((target) => [target.name, target] as const);
const anthropic = historyTargets.get("anthropic") as HistoryTarget;
const countTokens = (message: NeutralMessage): number => JSON.stringify(message.content).length;

const randomWindow: fc.Arbitrary<HistoryWindow> = fc.record({
  limit: fc.oneof(
    fc.record({ maxMessages: fc.integer({ min: 3, max: 12 }), pinFirstRequest: fc.boolean() }),
    fc.record({ maxTokens: fc.integer({ min: 60, max: 600 }), countTokens: fc.constant(countTokens) }),
  ),
  truncate: fc.record({ maxChars: fc.integer({ min: 2, max: 12 }) }),
});

const step = (index: number): RecordSketch[] => [
  assistant([text(`step ${index}`), call(`t${index}`)], { stopReason: "toolUse" }),
  result(`t${index}`, `${index} `.repeat(100)),
];
const turns = (to: number, from = 0): RecordSketch[] =>
  Array.from({ length: to - from }, (_, index) => [
    user(`ask ${from + index}`),
    ...step(from + index),
    assistant([text("done")]),
  ]).flat();

describe.each(targets)("a history with limits, for %s", (_name, target) => {
  it("gives after every record what cutting the whole context gives", { tags: ["slow"] }, () => {
    fc.assert(
      fc.property(fc.oneof(randomLog, validLog), randomWindow, (records, { limit = {}, truncate = {} }) => {
        const history = createHistory(target, { limit, truncate });
        for (const [index, record] of records.entries()) {
          history.append([record]);
          const truncated = truncateResults(buildContext(records.slice(0, index + 1)), truncate);
          const limited = limitContext(truncated, limit);
          expect(history.context()).toEqual({ ...limited, truncations: truncated.truncations });
          expect(history.render()).toEqual(target.render(limited));
        }
      }),
      runs(40),
    );
  });

  it("sends what a process that died would have sent, whatever is counted now", () => {
    fc.assert(
      fc.property(validLog, randomWindow, fc.double({ min: 0.3, max: 1, noNaN: true }), (records, window, share) => {
        const history = createHistory(target, window);
        history.append(records);
        const sent = history.render();
        const { cut, truncations } = history.context();
        fc.pre(cut !== null);
        const next = createHistory(target, {
          limit: { ...window.limit, countTokens: (message) => Math.floor(countTokens(message) * share), recorded: cut },
          truncate: { recorded: truncations, sentToSeq: records.length },
        });
        next.append(records);
        expect(next.render()).toEqual(sent);
        expect(next.context()).toEqual(history.context());
      }),
      runs(40),
    );
  });
});

describe("limits that change", () => {
  const options: HistoryOptions = { truncate: { maxChars: 60 } };
  const shortIn = (messages: readonly unknown[], left: number): number =>
    JSON.stringify(messages).split(`[… ${left} characters left out …]`).length - 1;

  it("leave what was sent short as it was sent", () => {
    const history = createHistory(anthropic, options);
    const records = storedRecords(turns(13, 10));
    history.append(records.slice(0, 8));
    const sent = openEnd(history.render().messages);
    history.markSent();
    history.setWindow({ truncate: { maxChars: 20 } });
    history.append(records.slice(8));
    const { messages } = history.render();
    expect(JSON.stringify(messages).startsWith(sent)).toBe(true);
    expect([shortIn(messages, 240), shortIn(messages, 280)]).toEqual([2, 1]);
  });

  it("shorten anew what was never sent, and unbind what followed a result that was sent whole", () => {
    const history = createHistory(anthropic);
    history.append(storedRecords(turns(12, 10)));
    history.render();
    history.setWindow({ truncate: { maxChars: 60 } });
    expect(history.context().truncations.map(({ sentToSeq }) => sentToSeq)).toEqual([null, null]);
    history.setWindow({ truncate: {} });
    history.render();
    history.markSent();
    history.setWindow({ truncate: { maxChars: 20 } });
    const { truncations, messages } = history.context();
    expect(truncations.map(({ headChars, sentToSeq }) => [headChars, sentToSeq])).toEqual([
      [12, 8],
      [12, 8],
    ]);
    expect(messages.map(({ isPrefixChanged }) => isPrefixChanged)).toEqual([
      false,
      false,
      false,
      true,
      true,
      true,
      true,
      true,
    ]);
  });
});

describe("the next call of a history with limits", () => {
  it("costs as much after 10, 1,000 and 10,000 records, and counts a message once", () => {
    const costs = [10, 1000, 10_000].map((records) => {
      let counted = 0;
      const count = (message: NeutralMessage): number => {
        counted++;
        return countTokens(message);
      };
      const history = createHistory(anthropic, {
        limit: { maxTokens: 1e9, countTokens: count },
        truncate: { maxChars: 60 },
      });
      const all = storedRecords(turns(10_000 + Math.ceil(records / 4), 10_000));
      history.append(all.slice(0, -4));
      history.render();
      history.markSent();
      const [before, countedBefore] = [history.work, counted];
      history.append(all.slice(-4));
      history.render();
      const { work } = history;
      return [
        work.recordsRead - before.recordsRead,
        work.messagesCleaned - before.messagesCleaned,
        work.turnsMapped - before.turnsMapped,
        counted - countedBefore,
      ];
    });
    expect(costs).toEqual([costs[0], costs[0], costs[0]]);
    expect(costs[0]).toEqual([4, 4, costs[0]?.[2], 4]);
  });

  it("costs what is left of the log where the limit is met, and that seldom", { tags: ["slow"] }, () => {
    const history = createHistory(anthropic, { limit: { maxMessages: 100 } });
    const records = storedRecords(turns(1000));
    let cuts = 0;
    let cutBefore: number | undefined;
    for (let turn = 0; turn < records.length; turn += 4) {
      history.append(records.slice(turn, turn + 4));
      history.render();
      const metAt = history.context().cut?.metAtSeq;
      if (metAt !== cutBefore) cuts++;
      cutBefore = metAt;
    }
    expect(cuts).toBeLessThanOrEqual(4000 / 28);
    expect(history.work.recordsRead).toBeLessThanOrEqual(4004);
    expect(history.work.messagesCleaned).toBeLessThanOrEqual(4000 + cuts * 100);
  });
});
