import { buildContext, type Context } from "@throughline/history";
import { historyTargets } from "@throughline/history/internal";
import { writableFormatNames } from "@throughline/foreign-formats/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { describe, expect, it } from "vitest";
import { createRandom } from "../../../tools/seeded-random.ts";
import { testSize } from "../../../tools/test-size.ts";
import type { ExportFormat } from "../src/export-types.ts";
import type { ImportSource } from "../src/import-types.ts";
import { exported, fixtureFolder, header, importAll, jsonLines, recordsOf, refOf } from "./fixture-folder.ts";

type Fields = Readonly<Record<string, unknown>>;
type Random = () => number;

const seeds = testSize({ short: 12, long: 300 });
const formats: readonly ExportFormat[] = ["pi", "openclaw", ...writableFormatNames];

/**
 * A session in pi's lines as crashes, interruptions and compactions leave it: calls without a result, results that come
 * late, twice or without their call, compactions that cut between them, and branches that were left.
 */
function brokenSession(random: Random): string {
  const pick = (limit: number): number => Math.floor(random() * limit);
  const lines: Fields[] = [header];
  let parentId: string | null = null;
  const add = (fields: Fields): void => {
    const at = lines.length;
    const timestamp = new Date(1_790_000_000_000 + at * 1000).toISOString();
    lines.push({ id: `m${at}`, parentId, timestamp, ...fields });
    parentId = `m${at}`;
  };
  const say = (message: Fields): void => add({ type: "message", message });
  const result = (id: string): void =>
    say({
      role: "toolResult",
      toolCallId: id,
      toolName: "run",
      content: [{ type: "text", text: `R${lines.length}` }],
      isError: false,
    });
  const late: string[] = [];
  const count = 4 + pick(8);
  for (let turn = 0; turn < count; turn++) {
    const kind = pick(10);
    if (kind < 3) say({ role: "user", content: `Q${lines.length}` });
    else if (kind < 6) {
      const calls = Array.from({ length: pick(3) }, (_, at) => `call_${lines.length}_${at}`);
      const text = pick(2) === 0 || calls.length === 0 ? [{ type: "text", text: `A${lines.length}` }] : [];
      const blocks = calls.map((id) => ({ type: "toolCall", id, name: "run", arguments: { of: id } }));
      const stopReason = calls.length > 0 ? "toolUse" : "stop";
      const author = { provider: "anthropic", api: "anthropic-messages", model: "claude-opus-4-7" };
      say({ role: "assistant", content: [...text, ...blocks], ...author, stopReason });
      for (const id of calls) {
        const fate = pick(6);
        if (fate < 4) result(id);
        if (fate === 3) result(id);
        if (fate === 4) late.push(id);
      }
    } else if (kind === 6) result(late.pop() ?? `call_gone_${lines.length}`);
    else if (kind === 7)
      add({ type: "custom_message", customType: "note", content: `N${lines.length}`, display: false });
    else if (kind === 8 && lines.length > 2) parentId = `m${1 + pick(lines.length - 1)}`;
    else if (lines.length > 2) {
      let kept = 1 + pick(lines.length - 1);
      // A late result joins a reply to the one before, which then is kept, too.
      while (kept > 1 && isReply(lines[kept - 1])) kept -= 1;
      const firstKeptEntryId = `m${kept}`;
      add({ type: "compaction", summary: `S${lines.length}`, firstKeptEntryId, tokensBefore: 9 });
    }
  }
  say({ role: "user", content: "Last" });
  return jsonLines(...lines);
}

function isReply(line: Fields | undefined): boolean {
  return (line?.["message"] as Fields | undefined)?.["role"] === "assistant";
}

const lateMark = "[Result that came in after the conversation had gone on without it]";

/** What the rendering adds around a summary, which some formats hold as a plain message. */
const addedWords = ["[Previous conversation summary]", "Understood, I have the context."];

function textOf(content: unknown): string {
  return Array.isArray(content)
    ? (content as readonly Fields[]).map(({ text }) => String(text)).join("")
    : String(content);
}

/**
 * What Anthropic gets, role by role. Ids of calls are numbered, because not every format has ids. Not every format has
 * an order of the results of one reply, and of its text between calls, or the ends of joined texts.
 */
function sent(context: Context): string {
  const numbers = new Map<unknown, number>();
  const numberOf = (id: unknown): number => numbers.get(id) ?? (numbers.set(id, numbers.size), numbers.size - 1);
  const { messages } = historyTargets.get("anthropic")!.render(context);
  const pieces = (messages as readonly Fields[]).flatMap(({ role, content }) => {
    const blocks = Array.isArray(content) ? (content as readonly Fields[]) : [{ type: "text", text: content }];
    const said = blocks.flatMap(({ type, text }) => (type === "text" ? String(text).split("\n") : []));
    const words = said.filter((line) => line !== "" && !addedWords.includes(line)).map((line) => `${role} ${line}`);
    const calls = blocks.filter(({ type }) => type === "tool_use");
    const asked = calls.map((call) => `?${numberOf(call["id"])} ${JSON.stringify(call["input"])}`);
    const results = blocks.filter(({ type }) => type === "tool_result");
    const answered = results.map((result) => `=${numberOf(result["tool_use_id"])} ${textOf(result["content"])}`);
    return [...answered.toSorted(), ...words, ...asked];
  });
  // Joined texts have no end.
  return pieces.join("\n").replaceAll(/\n(?:assistant|user) (?=[A-Z]\d)/g, "");
}

async function imported(path: string): Promise<{ readonly context: Context; text(to: ExportFormat): Promise<string> }> {
  const store = createMemoryStore();
  const [source] = (await importAll(store, path)) as [ImportSource];
  if (source.error !== null) throw source.error;
  const headId = (await store.load(refOf(source)))?.head.headId ?? null;
  const context = buildContext(await recordsOf(store, refOf(source)), { headId });
  return { context, text: (to) => exported(store, refOf(source), to) };
}

function refusals(context: Context): readonly unknown[] {
  return [...historyTargets.values()].flatMap((target) =>
    target.validate(target.render(context).messages, context.model?.modelId ?? null).map((one) => [target.name, one]),
  );
}

describe("an export of a session that was interrupted and compacted", () => {
  it.each(formats)("gives the same context again, which every provider takes: %s", { timeout: 120_000 }, async (to) => {
    for (let seed = 1; seed <= seeds; seed++) {
      using folder = fixtureFolder({ "x.jsonl": brokenSession(createRandom(seed)) });
      const before = await imported(folder.at("x.jsonl"));
      const text = await before.text(to);
      const after = await imported(folder.write(nameOf(to, text), Buffer.from(text, "latin1")));
      expect([seed, refusals(after.context)]).toEqual([seed, []]);
      // A result that comes after the conversation went on is sent as text, and replies around it are joined or not.
      if (!sent(before.context).includes(lateMark))
        expect([seed, sent(after.context)]).toEqual([seed, sent(before.context)]);
      // The others write what a compaction keeps a second time.
      const answered = to === "claude-code" ? [...text.matchAll(/"tool_use_id":"(\w+)"/g)].map(([, id]) => id) : [];
      expect([seed, answered]).toEqual([seed, [...new Set(answered)]]);
    }
  });
});

function nameOf(to: ExportFormat, text: string): string {
  if (to === "harmony") return "y.harmony.txt";
  return text.startsWith("[") || text.startsWith('{"messages"') ? "y.json" : "y.jsonl";
}
