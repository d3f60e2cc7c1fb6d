import { type LongSuite, program } from "./long-suite.ts";

function histories(store: string, flags: readonly string[]): LongSuite {
  const options = (count: number) => ["--store", store, "--histories", count, ...flags];
  return program(
    `random-histories-${store}`,
    "random histories of three handles against a model of the contract",
    "tools/random-histories.ts",
    { full: options(2000), quick: options(10) },
  );
}

function bitFlips(store: string, count = 20_000): LongSuite {
  const options = (flips: number) => ["--store", store, "--flips", flips];
  return program(
    `bit-flips-${store}`,
    "reads, copies and backups of a store with one changed bit",
    "tools/bit-flips.ts",
    {
      full: options(count),
      quick: options(20),
    },
  );
}

/** Random histories of each store, and changed bits in the files of SQLite, JSON Lines and PostgreSQL. */
export const storeSuites: readonly LongSuite[] = [
  histories("jsonl", ["--damage", "--foreign"]),
  histories("sqlite", []),
  histories("memory", []),
  bitFlips("sqlite"),
  bitFlips("jsonl"),
  bitFlips("postgres", 2000),
];
