import { buildContext } from "@throughline/history";
import { createMemoryStore } from "@throughline/store-memory";
import { describe, expect, it } from "vitest";
import type { ExportFormat } from "../src/export-types.ts";
import { exported, fixtureFolder, importAll, recordsOf, refOf } from "./fixture-folder.ts";
import { shapedSamples } from "./file-shapes.ts";

type Fields = Readonly<Record<string, unknown>>;

const listNames = ["messages", "items", "conversations"] as const;

interface Document {
  readonly list: readonly Fields[];
  /** The document with another list, and with a field before it where it has fields. */
  with(list: readonly Fields[], written: number): string;
}

function documentOf(value: unknown): Document {
  if (Array.isArray(value)) return { list: value as readonly Fields[], with: (list) => JSON.stringify(list) };
  const fields = value as Fields;
  const name = listNames.find((one) => one in fields) ?? "messages";
  const before = Object.entries(fields).filter(([field]) => field !== name);
  const head = Object.fromEntries(before);
  return {
    list: fields[name] as readonly Fields[],
    with: (list, written) => JSON.stringify({ writtenAt: written, ...head, [name]: list }),
  };
}

const documents = shapedSamples.filter(({ sample }) => sample.path.endsWith(".json"));

const changes: readonly (readonly [what: string, of: (list: readonly Fields[]) => readonly Fields[]])[] = [
  ["an element before the first one", (list) => [list.at(-1) as Fields, ...list]],
  ["an element between", (list) => [list[0] as Fields, list[0] as Fields, ...list.slice(1)]],
  ["no first element", (list) => list.slice(1)],
  ["no element between", (list) => [list[0] as Fields, ...list.slice(2)]],
  ["no last element", (list) => list.slice(0, -1)],
  ["another first element", (list) => [{ ...list[0], changed: true }, ...list.slice(1)]],
  ["another element between", (list) => list.map((one, at) => (at === 1 ? { ...one, changed: true } : one))],
  ["all elements the other way around", (list) => list.toReversed()],
];

describe("a document that its program wrote anew", () => {
  it.each(documents)("grows although its beginning changed: $what", async ({ format, name, sample }) => {
    const document = documentOf(sample.values[0]);
    using folder = fixtureFolder();
    await using store = createMemoryStore();
    for (let count = 1; count <= document.list.length; count++) {
      const written = document.with(document.list.slice(0, count), count);
      const [source] = await importAll(store, folder.write(name, written), { from: format });
      expect([count, source?.state, source?.error]).toEqual([count, count === 1 ? "imported" : "grown", null]);
      expect([count, await exported(store, refOf(source!), format as ExportFormat)]).toEqual([count, written]);
    }
  });

  it.each(documents.flatMap((one) => changes.map(([change, of]) => ({ ...one, change, of }))))(
    "loses nothing of what was imported, with $change: $what",
    async ({ format, name, sample, of }) => {
      const document = documentOf(sample.values[0]);
      using folder = fixtureFolder();
      await using store = createMemoryStore();
      const first = document.with(document.list, 1);
      const path = folder.write(name, first);
      const [source] = await importAll(store, path, { from: format });
      const ref = refOf(source!);
      const before = await recordsOf(store, ref);
      folder.write(name, document.with(of(document.list), 2));
      const [changed] = await importAll(store, path, { from: format });
      const after = await recordsOf(store, ref);
      expect(after.slice(0, before.length).map(({ id }) => id)).toEqual(before.map(({ id }) => id));
      expect([changed?.state, changed?.error?.code]).toEqual(["refused", "SOURCE_CHANGED"]);
      expect(await exported(store, ref, format as ExportFormat)).toBe(first);
      folder.write(name, first);
      expect((await importAll(store, path, { from: format }))[0]?.state).toBe("unchanged");
      expect(buildContext(after).messages.length).toBe(buildContext(before).messages.length);
    },
  );
});
