// A history of 10,000 messages from its lines, against JSON.parse of the same lines, interleaved in one process.
// node --conditions=@throughline/source lab/benchmarks/history-rebuild.ts [messages] [rounds] [target]
// With a target only that one is rendered: a session has one, and the engine's code for one shape is not that for seven.
import process from "node:process";
import type { SessionRecord, StoredRecord } from "../../packages/core/src/index.ts";
import { buildContext, createHistory } from "../../packages/history/src/index.ts";
import { historyTargets } from "../../packages/history/src/history-targets.ts";
import { median } from "../../benchmarks/measure.ts";

const [countText = "10000", roundsText = "15", targetName] = process.argv.slice(2);
const messageCount = Number(countText);
const rounds = Number(roundsText);
const targets = [...historyTargets.values()].filter(({ name }) => targetName === undefined || name === targetName);
if (targets.length === 0) throw new Error(`no target ${targetName}: ${[...historyTargets.keys()].join(", ")}`);

/** A session as agents write it: a request, steps with a call and its result, an answer. About 600 bytes a record. */
function sessionLines(count: number): readonly string[] {
  const model = { api: "anthropic-messages", provider: "anthropic", model: "claude-sonnet-4-5" };
  return Array.from({ length: count }, (_, index) => {
    const step = index % 10;
    const text = (length: number): readonly object[] => [{ type: "text", text: `${index} `.repeat(length) }];
    const id = `toolu_${Math.floor(index / 2)}`;
    const call = { type: "toolCall", id, name: "read", arguments: { path: `/src/${index}.ts`, limit: 200 } };
    const message =
      step === 0
        ? { role: "user", content: text(40) }
        : step % 2 === 1
          ? { role: "assistant", content: step === 9 ? text(60) : [...text(20), call], ...model, stopReason: "toolUse" }
          : {
              role: "toolResult",
              toolCallId: `toolu_${Math.floor((index - 1) / 2)}`,
              toolName: "read",
              content: text(120),
            };
    const record: SessionRecord = {
      type: "message",
      id: `r${index}`,
      parentId: index === 0 ? null : `r${index - 1}`,
      timestamp: "2026-01-02T03:04:05.006Z",
      message,
    };
    return JSON.stringify(record);
  });
}

function stored(line: string, index: number): StoredRecord {
  const record = JSON.parse(line) as SessionRecord;
  const { type, id, parentId } = record;
  return {
    seq: index + 1,
    id,
    parentId,
    type,
    side: false,
    tsMs: null,
    storedAtMs: null,
    bytes: line.length,
    crc: null,
    record,
  };
}

function milliseconds(work: () => unknown): number {
  const startedNs = process.hrtime.bigint();
  work();
  return Number(process.hrtime.bigint() - startedNs) / 1e6;
}

/** The least any rendering does: a message and a list for each record, nothing looked at and nothing repaired. */
function leastMessages(records: readonly StoredRecord[]): readonly object[] {
  const messages: object[] = [];
  for (const { record } of records) {
    const { role, content, toolCallId } = record["message"] as Readonly<Record<string, unknown>>;
    const blocks: object[] = [];
    for (const block of content as readonly Readonly<Record<string, unknown>>[]) {
      if (block["type"] !== "toolCall") blocks.push(block);
      else blocks.push({ type: "tool_use", id: block["id"], name: block["name"], input: block["arguments"] });
    }
    const isResult = role === "toolResult";
    const result = { type: "tool_result", tool_use_id: toolCallId, content: blocks };
    messages.push(isResult ? { role: "user", content: [result] } : { role, content: blocks });
  }
  return messages;
}

const lines = sessionLines(messageCount);
const times = new Map<string, number[]>();
const measure = (name: string, work: () => unknown): void => {
  times.set(name, [...(times.get(name) ?? []), milliseconds(work)]);
};

for (let round = 0; round < rounds + 2; round++) {
  if (round === 2) times.clear();
  measure("JSON.parse of the lines", () => lines.map((line) => JSON.parse(line) as unknown));
  measure("parse and context", () => buildContext(lines.map(stored)));
  measure("parse and the least that a rendering does", () => leastMessages(lines.map(stored)));
  for (const target of targets) {
    measure(`parse, context and ${target.name}`, () => target.render(buildContext(lines.map(stored))));
  }
  const [target] = targets;
  if (target === undefined) break;
  const history = createHistory(target);
  const records = lines.map(stored);
  history.append(records.slice(0, -2));
  history.render();
  history.append(records.slice(-2));
  measure("the next call of a growing history", () => history.render());
}

const control = median(times.get("JSON.parse of the lines") ?? []);
process.stdout.write(
  `${messageCount} messages, ${(lines.join("\n").length / 1e6).toFixed(1)} MB, median of ${rounds} rounds\n`,
);
for (const [name, values] of times) {
  const time = median(values);
  const ratio = (time / control).toFixed(2);
  process.stdout.write(`${name}: ${time.toFixed(2)} ms, ${ratio} x, least ${Math.min(...values).toFixed(2)} ms\n`);
}
