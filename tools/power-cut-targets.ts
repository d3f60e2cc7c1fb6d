import { spawnSync } from "node:child_process";
import { join } from "node:path";
import process from "node:process";
import type { Finding, SessionRef, SessionStore } from "../packages/core/src/index.ts";
import { createJsonlStore } from "../packages/store-jsonl/src/index.ts";
import { createSqliteStore } from "../packages/store-sqlite/src/index.ts";
import { repositoryRoot } from "./find-files.ts";
import { provenPartials, turnWords } from "./partials-until-cut.ts";

export const sourceCondition: readonly string[] = ["--conditions=@throughline/source"];

/** What is found of what was said, and what else is wrong. */
export interface PowerCutCheck {
  readonly found: ReadonlySet<string>;
  readonly findings: readonly Finding[];
}

/** What is written to while the power is cut. */
export interface PowerCutTarget {
  readonly title: string;
  /** The program that writes until it ends, and says a word for each thing that was acknowledged. */
  readonly writer: string;
  /** What it is told after its size and durability. @default nothing */
  readonly writerArgs?: readonly string[];
  /** Where it writes, below the disk. */
  readonly place: string;
  /** Those words of one life whose things only the next life could still show. @default none */
  readonly checkLife?: (path: string, words: readonly string[]) => Promise<readonly string[]>;
  readonly checkAll: (path: string) => Promise<PowerCutCheck>;
}

async function readRecords(store: SessionStore, ref: SessionRef): Promise<string[]> {
  const words: string[] = [];
  for await (const { records } of store.read(ref)) for (const { seq, id } of records) words.push(`${seq}:${id}`);
  return words;
}

async function verify(store: SessionStore): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  for await (const finding of store.maintenance?.verify({ full: true }) ?? []) findings.push(finding);
  return findings;
}

const sqlite: PowerCutTarget = {
  title: "the sqlite store",
  writer: join(repositoryRoot, "packages/store-sqlite/test/append-until-killed.ts"),
  writerArgs: ["partials"],
  place: "store.db",
  async checkLife(path, words) {
    await using store = createSqliteStore({ path, create: false, recover: false });
    return await provenPartials(store, words);
  },
  async checkAll(path) {
    await using store = createSqliteStore({ path, create: false, recover: false });
    const findings = await verify(store);
    const ref = { namespace: "", agentId: "main", key: "agent:main:killed" };
    return { found: new Set([...(await readRecords(store, ref)), ...(await turnWords(store))]), findings };
  },
};

const controlPath = join(repositoryRoot, "packages/store-sqlite/test/append-raw-until-killed.ts");
const control: PowerCutTarget = {
  title: "SQLite alone",
  writer: controlPath,
  place: "store.db",
  checkAll(path) {
    const read = spawnSync(process.execPath, [...sourceCondition, controlPath, path, "read"], { encoding: "utf8" });
    const words = read.stdout.split("\n").filter((line) => line !== "");
    return Promise.resolve({ found: new Set(words), findings: [] });
  },
};

const jsonlRef: SessionRef = { namespace: "", agentId: "main", key: "agent:main:cut" };
const jsonl: PowerCutTarget = {
  title: "the jsonl store",
  writer: join(repositoryRoot, "packages/store-jsonl/test/append-until-cut.ts"),
  writerArgs: ["with", "partials"],
  place: "store",
  // Every change of the entry replaces the one before it: it is there when it, or a later one of that life, is.
  async checkLife(path, words) {
    const changes = words.filter((word) => word.startsWith("entry:"));
    await using store = createJsonlStore({ root: path, create: false });
    const proven = await provenPartials(store, words);
    if (changes.length === 0) return proven;
    const changed = (await store.load(jsonlRef))?.entry["changed"];
    const [life, index = "-1"] = typeof changed === "string" ? changed.split("-") : [];
    const isKept = (word: string): boolean => {
      const [saidLife, saidIndex] = word.slice("entry:".length).split("-");
      return saidLife === life && Number(saidIndex) <= Number(index);
    };
    return [...proven, ...changes.filter(isKept)];
  },
  async checkAll(path) {
    await using store = createJsonlStore({ root: path, create: false });
    const found = new Set([...(await readRecords(store, jsonlRef)), ...(await turnWords(store))]);
    const findings = await verify(store);
    for (let cursor: string | null = null; ;) {
      const page = await store.list(cursor === null ? { limit: 500 } : { limit: 500, cursor });
      for (const { sessionId } of page.sessions) found.add(`session:${sessionId}`);
      cursor = page.nextCursor;
      if (cursor === null) return { found, findings };
    }
  },
};

export const powerCutTargets: Readonly<Record<"sqlite" | "control" | "jsonl", PowerCutTarget>> = {
  sqlite,
  control,
  jsonl,
};
