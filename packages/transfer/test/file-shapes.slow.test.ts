import { writeFileSync } from "node:fs";
import type { SessionStore } from "@throughline/core";
import { buildContext } from "@throughline/history";
import { createMemoryStore } from "@throughline/store-memory";
import { describe, expect, it } from "vitest";
import { createRandom } from "../../../tools/seeded-random.ts";
import { testSize } from "../../../tools/test-size.ts";
import type { ExportFormat } from "../src/export-types.ts";
import type { ImportFormat, ImportSource } from "../src/import-types.ts";
import { exported, fixtureFolder, importAll, recordsOf, refOf } from "./fixture-folder.ts";
import { shapedSamples, shapes, type ShapedSample } from "./file-shapes.ts";

const seeds = testSize({ short: 2, long: 60 });

interface ReadContext {
  readonly read: unknown;
  readonly model: unknown;
  readonly thinkingLevel: unknown;
}

/** What a model reads of the session. */
async function contextOf(store: SessionStore, source: ImportSource): Promise<ReadContext> {
  const headId = (await store.load(refOf(source)))?.head.headId ?? null;
  const { messages, model, thinkingLevel } = buildContext(await recordsOf(store, refOf(source)), { headId });
  const read = messages.map(({ role, content, ...more }) => [role, content, "toolCallId" in more && more.toolCallId]);
  return { read, model, thinkingLevel };
}

async function importOne(store: SessionStore, path: string, from: ImportFormat | "auto"): Promise<ImportSource> {
  const [source, ...others] = await importAll(store, path, { from });
  if (source === undefined || others.length > 0) throw new Error(`${others.length} others`);
  return source;
}

async function freshContext(path: string): Promise<ReadContext> {
  await using store = createMemoryStore();
  return await contextOf(store, await importOne(store, path, "auto"));
}

/** Nothing writes Aider's text. */
function targetOf({ format }: ShapedSample): ExportFormat | null {
  return format === "aider" ? null : (format as ExportFormat);
}

const latin = (bytes: Uint8Array): string => Buffer.from(bytes).toString("latin1");

const cases = shapedSamples.flatMap((sample) =>
  shapes.filter((shape) => shape.applies(sample.sample)).map((shape) => ({ ...sample, shape })),
);

describe("a file of a format in any shape", () => {
  it.each(cases)("is recognized and comes back out: $what $shape.name", { timeout: 300_000 }, async (one) => {
    const { format, name, sample, shape } = one;
    const to = targetOf(one);
    for (let seed = 1; seed <= seeds; seed++) {
      const random = createRandom(seed);
      const bytes = shape.of(sample, random);
      using folder = fixtureFolder();
      const path = folder.write(name, bytes);
      await using store = createMemoryStore();
      const source = await importOne(store, path, "auto");
      expect([seed, source.format, source.state, source.error]).toEqual([seed, format, "imported", null]);
      if (to !== null)
        expect([seed, (await exported(store, refOf(source), to)) === latin(bytes)]).toEqual([seed, true]);
      if (shape.isSame !== false) {
        const plain = folder.write(`plain/${name}`, Buffer.from(shapes[0]?.of(sample, random) ?? []));
        const [own, same] = [await contextOf(store, source), await freshContext(plain)];
        expect([seed, own.read]).toEqual([seed, same.read]);
        if (shape.isSame === true) expect([seed, own]).toEqual([seed, same]);
      }
      expect((await importOne(store, path, "auto")).state).toBe("unchanged");
    }
  });

  it.each(cases.filter(({ shape }) => shape.name !== "with 10 MB before anything else"))(
    "is whole after any cuts: $what $shape.name",
    { timeout: 300_000 },
    async (one) => {
      const { format, name, sample, shape } = one;
      const to = targetOf(one);
      for (let seed = 1; seed <= seeds; seed++) {
        const random = createRandom(seed);
        const bytes = shape.of(sample, random);
        using folder = fixtureFolder();
        const path = folder.write(name, bytes);
        const context = await freshContext(path);
        const sizes = [...Array(1 + Math.floor(random() * 3)).keys()]
          .map(() => 1 + Math.floor(random() * (bytes.length - 1)))
          .toSorted((first, other) => first - other);
        const from = random() < 0.5 ? "auto" : format;
        await using store = createMemoryStore();
        for (const size of sizes) {
          writeFileSync(path, bytes.subarray(0, size));
          await importOne(store, path, from);
        }
        writeFileSync(path, bytes);
        const whole = await importOne(store, path, from);
        expect([seed, sizes, whole.format, whole.error]).toEqual([seed, sizes, format, null]);
        expect([seed, sizes, await contextOf(store, whole)]).toEqual([seed, sizes, context]);
        if (to !== null)
          expect([seed, sizes, await exported(store, refOf(whole), to)]).toEqual([seed, sizes, latin(bytes)]);
        expect((await importOne(store, path, from)).state).toBe("unchanged");
      }
    },
  );
});
