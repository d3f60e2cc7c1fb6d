import { writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { SessionStore } from "@throughline/core";
import { foreignFormatNames } from "@throughline/foreign-formats/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { describe, expect, it } from "vitest";
import { createRandom } from "../../../tools/seeded-random.ts";
import { testSize } from "../../../tools/test-size.ts";
import { sampleTexts, textOf } from "../../foreign-formats/test/sample-texts.ts";
import { importChanged } from "../src/import-paths.ts";
import type { ImportSource } from "../src/import-types.ts";
import { KeptReadings } from "../src/kept-readings.ts";
import { fullLook, type SearchLook } from "../src/search-look.ts";
import { fixtureFolder, header, importAll, jsonLines, message, recordsOf, refOf } from "./fixture-folder.ts";

/** Imports one file again and again, as a sync that goes on does. */
class GoingOn {
  readonly store: SessionStore = createMemoryStore();
  readonly #readings = new KeptReadings(0);
  /** Counts the imports that read a file from where it ended. */
  continued = 0;

  async import(path: string): Promise<ImportSource> {
    const taken = new Set<string>();
    const look: SearchLook = {
      ...fullLook,
      hasGrown: () => true,
      tookGrowth: (grown) => void taken.add(grown),
      isKnown: (known) => Promise.resolve(taken.has(known)),
    };
    const memory = { look, readings: this.#readings };
    const sources = await Array.fromAsync(importChanged(this.store, [path], {}, memory));
    this.continued += taken.size;
    const [source] = sources;
    if (source === undefined || sources.length > 1) throw new Error(`${sources.length} sources`);
    return source;
  }
}

const piLines = [message("a", null), message("b", "a", "\u00e9\u2028"), message("c", "b"), message("d", "nowhere")];

/** Every format whose files grow by lines. */
const samples = [
  { format: "pi", name: "s.jsonl", text: jsonLines(header, ...piLines) },
  ...foreignFormatNames
    .filter((format) => format !== "langgraph" && format !== "cursor")
    .map((format) => {
      const name = basename(sampleTexts[format].path);
      return { format, name, text: textOf(sampleTexts[format]) };
    })
    .filter(({ name, text }) => name.endsWith(".jsonl") && text.endsWith("\n") && text.split("\n").length > 3),
];

/** Returns sizes up to the whole: mostly behind whole lines, as programs write them. */
function sizesOf(bytes: Buffer, random: () => number): readonly number[] {
  const below = (most: number): number => Math.floor(random() * most);
  const ends = [...bytes.keys()].filter((at) => bytes[at] === 0x0a).map((at) => at + 1);
  const sizes = Array.from({ length: 2 + below(5) }, () =>
    below(4) === 0 ? 1 + below(bytes.length) : (ends[below(ends.length)] ?? bytes.length),
  );
  return [...new Set([...sizes, bytes.length])].toSorted((one, other) => one - other);
}

async function contentOf(store: SessionStore, source: ImportSource): Promise<unknown> {
  if (source.key === null || source.error !== null) return source.error?.code;
  const { head, entry } = (await store.load(refOf(source))) ?? {};
  const records = (await recordsOf(store, refOf(source))).map(({ storedAtMs: _time, ...stored }) => stored);
  return { records, head, entry };
}

describe("a reading that is kept", () => {
  it.each(samples)(
    "gives what reading from the start gives, however a file grows: $format",
    { timeout: 600_000 },
    async ({ name, text }) => {
      using folder = fixtureFolder();
      const bytes = Buffer.from(text);
      const path = join(folder.path, name);
      let continued = 0;
      for (let round = 0; round < testSize({ short: 12, long: 300 }); round++) {
        const going = new GoingOn();
        await using anew = createMemoryStore();
        const sizes = sizesOf(bytes, createRandom(round));
        for (const size of sizes) {
          writeFileSync(path, bytes.subarray(0, size));
          const source = await going.import(path);
          const [other] = await importAll(anew, path);
          expect([sizes, size, source]).toEqual([sizes, size, other]);
          expect([sizes, size, await contentOf(going.store, source)]).toEqual([
            sizes,
            size,
            await contentOf(anew, source),
          ]);
        }
        await going.store.close();
        continued += going.continued;
      }
      expect(continued).toBeGreaterThan(5);
    },
  );
});
