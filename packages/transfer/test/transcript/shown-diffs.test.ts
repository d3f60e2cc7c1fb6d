import { existsSync } from "node:fs";
import { join } from "node:path";
import type { SessionStore, StoredRecord } from "@throughline/core";
import { listSessions, runSteps } from "@throughline/core/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { diffLines, FileChanges } from "@throughline/transcript-view/internal";
import { describe, expect, it } from "vitest";
import { importAll } from "../fixture-folder.ts";
import { pageRef, said } from "./page-texts.ts";

const corpus = process.env["THROUGHLINE_CORPUS"] ?? "";
const folders = ["foreign/claude-code", "foreign/codex", "foreign/opencode", "foreign/gemini-cli", "pi"];

/** Applies a diff as it is shown: its parts in their order, each from the lines that it keeps or cuts. */
function applied(before: string, shown: readonly string[]): string {
  const rest = linesOf(before);
  const made: string[] = [];
  for (const part of partsOf(shown)) {
    const old = part.filter((line) => !line.startsWith("+")).map((line) => line.slice(1));
    const at = rest.findIndex((_line, from) => old.every((line, index) => rest[from + index] === line));
    if (old.length > 0 && at < 0) throw new Error(`A part of the diff is not in the text: ${JSON.stringify(old)}`);
    made.push(...rest.splice(0, Math.max(0, at)));
    rest.splice(0, old.length);
    made.push(...part.filter((line) => !line.startsWith("-")).map((line) => line.slice(1)));
  }
  return [...made, ...rest].join("\n");
}

function partsOf(shown: readonly string[]): readonly (readonly string[])[] {
  const parts: string[][] = [[]];
  for (const line of shown)
    if (line.startsWith("@@")) parts.push([]);
    else parts.at(-1)?.push(line);
  return parts;
}

/** A diff for people says nothing about the line feed at the end. */
function linesOf(text: string): string[] {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n");
}

/** Compares each edit of all sessions whose texts the calls state, and returns how many. */
async function compareEdits(store: SessionStore): Promise<number> {
  let compared = 0;
  for await (const { ref, head } of listSessions(store, { state: "any" })) {
    if (head.lastSeq === 0) continue;
    const records: StoredRecord[] = [];
    for await (const page of store.read(ref)) records.push(...page.records);
    for (const { before, after, place } of editsOf(records)) {
      // The usual 20 ms may end within one comparison on a busy machine.
      const lines = runSteps(diffLines({ edits: [{ before, after }], patch: null, isWhole: false }, 60_000));
      expect(applied(before, lines), `${ref.key} ${place}`).toBe(linesOf(after).join("\n"));
      compared += 1;
    }
  }
  return compared;
}

function editsOf(
  records: readonly StoredRecord[],
): readonly { readonly before: string; readonly after: string; readonly place: string }[] {
  const changes = new FileChanges(null);
  for (const record of records) {
    const counting = changes.take(record);
    if (counting !== null) runSteps(counting);
  }
  const bySeq = new Map(records.map((record) => [record.seq, record]));
  return runSteps(changes.files()).flatMap(({ path }) =>
    changes.callsOf(path).flatMap((call) => {
      const record = bySeq.get(call.seq);
      const edits = record === undefined ? [] : changes.editsIn(record, call, path);
      return edits.flatMap(({ before, after }) =>
        before === null || after === null ? [] : [{ before, after, place: `#${call.seq} ${path}` }],
      );
    }),
  );
}

const lines = (from: number, to: number): string =>
  Array.from({ length: to - from }, (_, at) => `line ${from + at}\n`).join("");
const texts: readonly (readonly [before: string, after: string])[] = [
  ["", "new\nfile\n"],
  ["gone\n", ""],
  ["a\nb\nc", "a\nB\nc"],
  ["a\r\nb\r\n", "a\r\nc\r\n"],
  ["-- sql\n++ c\n@@ at\n", "-- SQL\n++ c\n@@ at\nmore\n"],
  [`${lines(0, 40)}x\n${lines(40, 80)}`, `${lines(0, 5)}${lines(6, 40)}y\n${lines(40, 80)}z\n`],
  ["$& $1 \u{1F30A}\n\n\n", "\n$& $1 \u{1F30A}\n\n"],
];

describe("the diff of an edit, applied to the text before, gives the text after", () => {
  it("for odd texts", async () => {
    const store = createMemoryStore();
    await store.save(pageRef, { sessionId: "s1" }, { ifRevision: null });
    const calls = texts.map(([old_string, new_string], index) => {
      return {
        type: "toolCall",
        id: `t${index}`,
        name: "Edit",
        arguments: { file_path: "/a", old_string, new_string },
      };
    });
    await store.append(pageRef, [said("assistant", calls)]);
    expect(await compareEdits(store)).toBe(texts.length);
  });

  it.skipIf(!existsSync(corpus))("for every edit of the corpus", async () => {
    const store = createMemoryStore();
    for (const folder of folders) await importAll(store, join(corpus, folder));
    expect(await compareEdits(store)).toBeGreaterThan(20);
  });
});
