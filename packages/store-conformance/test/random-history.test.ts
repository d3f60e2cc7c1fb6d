import { createMemoryStore } from "@throughline/store-memory";
import type { SessionStore } from "@throughline/core";
import { expect, it } from "vitest";
import { modelCases } from "../src/cases/model.ts";

/** A memory store that forgets a rewind beside a patch of the entry. */
function brokenStore(): SessionStore {
  const store = createMemoryStore();
  const append = store.append.bind(store);
  store.append = (ref, drafts, options = {}) => {
    const { rewindTo, ...rest } = options;
    return append(ref, drafts, options.entry !== undefined && rewindTo != null ? rest : options);
  };
  return store;
}

/** Runs a printed program on a store, and returns what it prints, without times. */
async function printsOf(program: string, store: SessionStore): Promise<readonly string[]> {
  const lines: string[] = [];
  const log = (value: unknown): void => {
    lines.push(JSON.stringify(value, (name, part: unknown) => (name.endsWith("Ms") ? 0 : part)) ?? "");
  };
  const run = new Function("store", "console", `return (async () => {\n${program}\n})()`) as (
    ...given: readonly unknown[]
  ) => Promise<void>;
  await run(store, { log });
  return lines;
}

it("a failed random history is printed as a program that repeats the failure", { timeout: 60_000 }, async () => {
  const [random] = modelCases;
  if (random === undefined) throw new Error("The case is gone.");
  const failure = await random.run({ store: brokenStore() } as Parameters<typeof random.run>[0]).then(
    () => expect.unreachable("the broken store passed"),
    (error: unknown) => (error as Error).message,
  );
  expect(failure).toMatch(/seed -?\d+, path "[\d:]+"/);
  const program = failure.split("):\n\n").at(-1) ?? "";
  expect(program.split("\n").length).toBeGreaterThan(2);
  const [broken, sound] = [await printsOf(program, brokenStore()), await printsOf(program, createMemoryStore())];
  expect(broken).not.toEqual(sound);
});
