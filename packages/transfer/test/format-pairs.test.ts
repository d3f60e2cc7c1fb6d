import { buildContext } from "@throughline/history";
import type { NeutralMessage } from "@throughline/history/internal";
import { writableFormatNames } from "@throughline/foreign-formats/internal";
import { createMemoryStore } from "@throughline/store-memory";
import type { ExportFormat } from "../src/export-types.ts";
import { exportSession } from "@throughline/transfer";
import type { ImportSource } from "../src/import-types.ts";
import { describe, expect, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import { fixtureFolder, header, importAll, jsonLines, recordsOf, refOf, type FixtureFolder } from "./fixture-folder.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Every format that is written and read. */
const formats: readonly ExportFormat[] = ["pi", "openclaw", ...writableFormatNames];

const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const strange = [
  "plain",
  "line\nbreaks\n",
  "\u2028\u{1F30A} é",
  '"quotes" \\ {json: [1]}',
  "# heading\n> quote",
  "<tag a='1'>",
  "[error] not one",
];

/** Numbers below a limit, the same ones of the same seed. */
function choices(seed: number): (limit: number) => number {
  let state = seed * 0x9e3779b1 + 1;
  return (limit) => {
    state = Math.imul(state ^ (state >>> 15), 0x85ebca6b) + 0x6d2b79f5;
    return ((state ^ (state >>> 13)) >>> 0) % limit;
  };
}

/** A conversation in pi's lines: questions with images, thinking, several calls at once, failed results, words of every kind. */
function conversation(seed: number): string {
  const pick = choices(seed);
  const words = (what: string): string => `${what} ${pick(1000)} ${strange[pick(strange.length)] ?? ""}`;
  const lines: object[] = [header];
  let count = 0;
  const add = (message: Fields): void => {
    count += 1;
    const place = { id: `m${count}`, parentId: count === 1 ? null : `m${count - 1}` };
    lines.push({
      type: "message",
      ...place,
      timestamp: new Date(1_790_000_000_000 + count * 1000).toISOString(),
      message,
    });
  };
  const reply = (content: readonly Fields[]): Fields => ({
    role: "assistant",
    content,
    provider: "anthropic",
    api: "anthropic-messages",
    model: "claude-opus-4-7",
    usage: { input: 3, output: 20, cacheRead: 7, cacheWrite: 0, totalTokens: 30 },
    stopReason: content.some(({ type }) => type === "toolCall") ? "toolUse" : "stop",
  });
  for (let turn = 0; turn < 3; turn++) {
    const image = { type: "image", data: png, mimeType: "image/png" };
    add({ role: "user", content: [{ type: "text", text: words("Q") }, ...(pick(3) === 0 ? [image] : [])] });
    for (let step = pick(3); step > 0; step--) {
      const calls = Array.from({ length: 1 + pick(2) }, (_, at) => ({
        type: "toolCall",
        id: `call_${seed}_${count}_${at}`,
        name: ["read", "run_command", "web-search"][pick(3)] ?? "",
        arguments: [{}, { path: words("a") }, { list: [1, null, { deep: "é" }], flag: true }][pick(3)] ?? {},
      }));
      const thinking = { type: "thinking", thinking: words("Hm"), thinkingSignature: "c2lnbmF0dXJl" };
      add(
        reply([
          ...(pick(2) === 0 ? [thinking] : []),
          ...(pick(2) === 0 ? [{ type: "text", text: words("S") }] : []),
          ...calls,
        ]),
      );
      for (const { id, name } of calls)
        add({
          role: "toolResult",
          toolCallId: id,
          toolName: name,
          content: [{ type: "text", text: words("R") }],
          isError: pick(4) === 0,
        });
    }
    add(reply([{ type: "text", text: words("A") }]));
  }
  return jsonLines(...lines);
}

/** What a model sees, piece by piece: each with what a report must name when the piece is not there. */
function pieces(messages: readonly NeutralMessage[]): readonly (readonly [piece: string, loss: RegExp | null])[] {
  return messages.flatMap((message) => {
    const isFailed = message.role === "toolResult" && message.isError;
    // A text may come in several blocks, and blanks at its ends are not kept by all providers.
    const said = message.content.flatMap((block) => (block.type === "text" ? [block.text.trim()] : []));
    const named = isFailed ? [["failed result", /failed result/] as const] : [];
    const texts = said.map((text) => [`${message.role} ${text}`, isFailed ? /failed result/ : null] as const);
    const others = message.content.flatMap((block): (readonly [string, RegExp | null])[] => {
      if (block.type === "toolCall") return [[`call ${block.name} ${JSON.stringify(block.arguments)}`, null]];
      if (block.type === "thinking") return [["thinking", /thinking/]];
      return block.type === "image" ? [["image", /image/]] : [];
    });
    return [...named, ...texts, ...others];
  });
}

interface Carried {
  readonly text: string;
  readonly pieces: readonly (readonly [string, RegExp | null])[];
  readonly losses: readonly string[];
}

/** Imports a text, and exports it in another form. */
async function carry(folder: FixtureFolder, name: string, text: string, to: ExportFormat): Promise<Carried> {
  await using store = createMemoryStore();
  const [source] = (await importAll(store, folder.write(name, text))) as [ImportSource];
  expect([name, source]).toMatchObject([name, { state: "imported", lost: [], repaired: 0, error: null }]);
  const state = await store.load(refOf(source));
  const { messages } = buildContext(await recordsOf(store, refOf(source)), { headId: state?.head.headId ?? null });
  const losses = new Set<string>();
  const parts = await Array.fromAsync(
    exportSession(store, refOf(source), {
      to,
      onRemark: (remark) =>
        void losses.add(`${remark.what} ${"kind" in remark ? String(remark.kind) : ""} ${remark.reason}`),
    }),
  );
  return { text: Buffer.concat(parts).toString(), pieces: pieces(messages), losses: [...losses] };
}

function fileName(format: ExportFormat, text: string): string {
  return `${format}.${/^[[{]\s*"?(?:messages|info|conversations)|^\[/.test(text) ? "json" : "jsonl"}`;
}

/** Pieces of one conversation that another one lacks, and that no loss names. */
function unnamed(before: Carried, after: Carried): readonly string[] {
  const left = after.pieces.map(([piece]) => piece);
  return before.pieces.flatMap(([piece, loss]) => {
    const exact = left.indexOf(piece);
    // What stands for an image that was left out may be joined to the words before it.
    const at =
      exact >= 0 || !before.losses.some((one) => /image/.test(one))
        ? exact
        : left.findIndex((one) => one.startsWith(piece));
    if (at >= 0) left.splice(at, 1);
    const isNamed = loss !== null && before.losses.some((one) => loss.test(one));
    return at >= 0 || isNamed ? [] : [piece];
  });
}

const seeds = testSize({ short: [1], long: Array.from({ length: 40 }, (_, at) => at + 1) });

describe("a conversation that goes from one program to another", () => {
  it.each(formats)("loses no word, call or result without naming it, from %s to every other", async (from) => {
    using folder = fixtureFolder();
    for (const seed of seeds) {
      const { text: first } = await carry(folder, `first-${seed}.jsonl`, conversation(seed), from);
      for (const to of formats) {
        const before = await carry(folder, `${seed}-${to}-from-${fileName(from, first)}`, first, to);
        const after = await carry(folder, `${seed}-from-${from}-${fileName(to, before.text)}`, before.text, "pi");
        expect({ seed, from, to, lost: unnamed(before, after) }).toEqual({ seed, from, to, lost: [] });
      }
    }
  });
});

describe("a session whose records lead back to themselves", () => {
  it.each(formats)("is written for %s, and its own bytes come back", async (to) => {
    const say = (id: string, parentId: string, text: string): Fields => ({
      type: "message",
      id,
      parentId,
      timestamp: "2026-02-01T16:10:51.000Z",
      message: { role: "user", content: text },
    });
    for (const cycle of [
      [say("a", "a", "its own parent")],
      [say("a", "b", "one"), say("b", "a", "two")],
      [say("a", "c", "one"), say("b", "a", "two"), say("c", "b", "three"), say("d", "c", "four")],
    ]) {
      const text = jsonLines(header, ...cycle);
      using folder = fixtureFolder({ "s.jsonl": text });
      const store = createMemoryStore();
      const [source] = await importAll(store, folder.at("s.jsonl"));
      const ref = refOf(source ?? { agentId: "", key: "" });
      const [words = ""] = cycle.slice(-1).map(({ message }) => String((message as Fields)["content"]));
      const written = Buffer.concat(await Array.fromAsync(exportSession(store, ref, { to })));
      expect(written.toString()).toContain(words);
      const own = Buffer.concat(await Array.fromAsync(exportSession(store, ref, { to: "jsonl" })));
      expect(own.toString()).toBe(text);
    }
  });
});
