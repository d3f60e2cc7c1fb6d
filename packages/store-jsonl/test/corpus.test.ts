import { copyFileSync, existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { AppendDraft, SessionRef, SessionStore } from "@throughline/core";
import type { SourcedRecord } from "@throughline/core/internal";
import { sessionRef } from "@throughline/core";
import { createLineSplitter, createTranscriptReader, decodeLine } from "@throughline/openclaw-format";
import { encodeLine, type TranscriptLine } from "@throughline/openclaw-format/internal";
import { createJsonlStore } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { mainRef, storeWithSession, transcriptOf } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const corpus = process.env["THROUGHLINE_CORPUS"] ?? "";
const transcripts = existsSync(corpus)
  ? readdirSync(corpus, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".jsonl"))
  : [];

function linesOf(bytes: Uint8Array): readonly TranscriptLine[] {
  const splitter = createLineSplitter();
  const reader = createTranscriptReader();
  const last = (lines: ReturnType<typeof splitter.push>) => [...lines, splitter.end()].filter((line) => line !== null);
  return last(splitter.push(bytes)).map(({ bytes: line, ...place }, index) =>
    reader.push(decodeLine(line), { line: index + 1, ...place }),
  );
}

async function recordsOf(store: SessionStore, ref: SessionRef): Promise<readonly SourcedRecord[]> {
  const records: SourcedRecord[] = [];
  for await (const page of store.read(ref, { payload: "source" })) records.push(...page.records);
  return records;
}

function bytesOf(records: readonly SourcedRecord[], isTerminated: boolean): Buffer {
  const bytes = Buffer.concat(records.flatMap(({ source }) => [encodeLine(source), Buffer.from("\n")]));
  return isTerminated ? bytes : bytes.subarray(0, -1);
}

describe.skipIf(transcripts.length === 0)("real transcripts", () => {
  it(
    "come back byte for byte after an import, also when our file is read as a transcript",
    { timeout: 60_000 },
    async () => {
      for (const path of transcripts) {
        const bytes = readFileSync(join(corpus, path));
        const lines = linesOf(bytes);
        const root = newFolder();
        const store = await storeWithSession(root, { sessionsJson: false });
        const drafts = lines.map(({ source, record, isSourceCanonical }): AppendDraft =>
          isSourceCanonical ? { source } : { source, record },
        );
        for (let from = 0; from < drafts.length; from += 300)
          await store.append(mainRef, drafts.slice(from, from + 300), { durability: "none" });
        await store.close();
        const again = createJsonlStore({ root, sessionsJson: false });
        const records = await recordsOf(again, mainRef);
        expect(bytesOf(records, bytes.at(-1) === 0x0a).equals(bytes), path).toBe(true);
        expect(
          records.map(({ record }) => record),
          path,
        ).toEqual(lines.map(({ record }) => record));
        const own = linesOf(readFileSync(transcriptOf(root))).filter(({ envelope }) => envelope?.seq !== 0);
        expect(
          own.map(({ record }) => record),
          path,
        ).toEqual(lines.map(({ record }) => record));
        await again.close();
      }
    },
  );

  it("are read where they lie, and stay as they are", { timeout: 60_000 }, async () => {
    for (const path of transcripts) {
      const bytes = readFileSync(join(corpus, path));
      const root = newFolder();
      await (await storeWithSession(root, { sessionsJson: false })).close();
      const placed = join(root, "agents/main/sessions", basename(path));
      copyFileSync(join(corpus, path), placed);
      const store = createJsonlStore({ root, sessionsJson: false });
      const { sessions } = await store.list();
      const ref = sessions.find(({ sessionId }) => sessionId !== "s1")?.ref ?? sessionRef({ key: "agent:main:none" });
      const records = await recordsOf(store, ref);
      // A last line that is torn is no record of a file that may still be written.
      const whole = linesOf(bytes).filter(({ unparsed }) => unparsed !== "torn");
      expect(
        records.map(({ record }) => record),
        path,
      ).toEqual(whole.map(({ record }) => record));
      await store.close();
      expect(readFileSync(placed).equals(bytes), path).toBe(true);
    }
  });
});
