// How large the index of words of an encrypted SQLite or PostgreSQL store is beside the index of a plain one, with the same records.
// node --conditions=@throughline/source lab/benchmarks/encrypted-index.ts [--records 20000] [--words 30000]
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { createKeyring, openEncryption } from "../../packages/encryption/src/index.ts";
import { searchText } from "../../packages/core/src/search-text.ts";
import { searchVector } from "../../packages/store-postgres/src/search-vector.ts";
import { createSqliteStore } from "../../packages/store-sqlite/src/index.ts";

const { values } = parseArgs({
  options: { records: { type: "string", default: "20000" }, words: { type: "string", default: "30000" } },
});
const [records, vocabulary] = [Number(values.records), Number(values.words)];

let state = 12_345;
/** Returns the next number of a fixed sequence below 1. */
function next(): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return state / 2 ** 32;
}

const syllables = ["ka", "ro", "ti", "men", "sal", "vor", "ed", "ing", "pla", "qu", "est", "no", "wer", "li"];
const words = Array.from({ length: vocabulary }, () =>
  Array.from({ length: 1 + Math.floor(next() * 4) }, () => syllables[Math.floor(next() * syllables.length)]).join(""),
);
/** Frequencies fall with the rank, as in texts of people. */
const text = (): string =>
  Array.from({ length: 120 }, () => words[Math.floor(vocabulary ** next()) - 1] ?? "the").join(" ");

const folder = mkdtempSync(join(tmpdir(), "throughline-index-"));
const options = { keyring: join(folder, "keys.db"), mainKey: { key: randomBytes(32) } };
await createKeyring(options);
const encryption = await openEncryption(options);
const drafts = Array.from({ length: records }, () => ({
  type: "message" as const,
  message: { role: "user", content: text() },
}));

const sizes: number[] = [];
for (const codec of [undefined, encryption]) {
  const path = join(folder, `${sizes.length}.db`);
  const store = createSqliteStore({ path, searchFill: "on-demand", codec });
  const ref = { namespace: "", agentId: "main", key: "agent:main:a" };
  await store.save(ref, { sessionId: "a" }, { ifRevision: null });
  for (let from = 0; from < records; from += 500) await store.append(ref, drafts.slice(from, from + 500));
  const before = process.cpuUsage();
  for await (const _ of store.search?.fill?.() ?? []);
  const { user, system } = process.cpuUsage(before);
  await store.close();
  const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
  const database = new DatabaseSync(path, { readOnly: true });
  const row = database.prepare("SELECT sum(length(block)) AS bytes FROM store_search_data").get();
  database.close();
  sizes.push(Number(row?.["bytes"]));
  process.stdout.write(
    `sqlite ${codec === undefined ? "plain" : "encrypted"}: ${sizes.at(-1)} bytes of index, filled in ${Math.round((user + system) / 1000)} ms of processor\n`,
  );
}
process.stdout.write(`sqlite ratio: ${((sizes[1] ?? 0) / (sizes[0] ?? 1)).toFixed(2)}\n`);

/** As PostgreSQL stores a tsvector: 4 bytes a word, its letters, and 2 bytes for each position and their count. */
function vectorBytes(vector: string): number {
  return vector.split(" ").reduce((sum, lexeme) => {
    const [word = "", places] = lexeme.split("':");
    return sum + 4 + word.replaceAll("'", "").length + (places === undefined ? 0 : 2 + 2 * places.split(",").length);
  }, 0);
}
const token = (word: string): string => encryption.searchToken?.(word, "") ?? "";
const vectors = [null, token].map((given) =>
  drafts.slice(0, 2000).reduce((sum, draft) => {
    const found = searchText({ id: "", parentId: null, timestamp: "", ...draft });
    return sum + (found === null ? 0 : vectorBytes(searchVector(found, given)));
  }, 0),
);
process.stdout.write(`postgresql, words of a row: ratio ${((vectors[1] ?? 0) / (vectors[0] ?? 1)).toFixed(2)}\n`);
encryption.close();
rmSync(folder, { recursive: true });
