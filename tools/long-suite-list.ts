import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { missingForCitus } from "./citus-programs.ts";
import { adapterSuites } from "./long-suite-adapters.ts";
import { labSuites } from "./long-suite-lab.ts";
import { files, type LongSuite, program, tests } from "./long-suite.ts";
import { storeSuites } from "./store-suites.ts";

const killSizes: readonly (readonly [name: string, sizeBytes: number, rounds: number])[] = [
  ["200b", 200, 1000],
  ["2kb", 2000, 1000],
  ["50kb", 50_000, 500],
  ["3mb", 3_000_000, 100],
];

function killAppends(scheme: "jsonl" | "sqlite"): readonly LongSuite[] {
  return killSizes.map(([name, sizeBytes, rounds]) => {
    const options = (count: number) => ["--store", scheme, "--size", sizeBytes, "--rounds", count, "--bundled"];
    return program(
      `kill-append-${scheme}-${name}`,
      `kill -9 of append, records of ${sizeBytes} bytes`,
      "tools/kill-append.ts",
      { full: options(rounds), quick: options(sizeBytes > 1_000_000 ? 3 : 10) },
    );
  });
}

function powerCuts(scheme: "jsonl" | "sqlite", fs: "ext4" | "xfs"): LongSuite {
  const options = (rounds: number) => ["--store", scheme, "--fs", fs, "--rounds", rounds];
  return program(
    `power-cut-${scheme}-${fs}`,
    `the power of a mounted ${fs} cut under a writing store`,
    "tools/power-cut.ts",
    { full: options(200), quick: options(3) },
    () => missingForDisks(fs),
  );
}

function crashKernel(fs: "ext4" | "xfs"): LongSuite {
  const options = (workloads: number) => ["--fs", fs, "--workloads", workloads];
  return program(
    `crash-kernel-${fs}`,
    `the simulated disk against the kernel's ${fs}`,
    "tools/crash-kernel.ts",
    { full: options(200), quick: options(5) },
    () => missingForDisks(fs),
  );
}

/** Each part takes a third of the states. */
const crashStates: readonly LongSuite[] = [1, 2, 3].map((part) =>
  program(`crash-states-${part}`, `states of a simulated disk, part ${part} of 3`, "tools/crash-states.ts", {
    full: ["--part", `${part}/3`],
    quick: ["--part", `${part}/150`, "--cut", 64, "--recover", 200, "--recovered", 2],
  }),
);

function contention(name: string, about: string, args: readonly string[]): LongSuite {
  return program(`contention-${name}`, about, "tools/contention.ts", {
    full: [...args, "--rounds", 20, "--kills", 5],
    quick: [...args, "--rounds", 1, "--kills", 1, "--operations", 40],
  });
}

const postgres15 = process.env["THROUGHLINE_POSTGRES_BIN"] ?? "/usr/lib/postgresql/15/bin";

function missingPostgres15(): string | null {
  return existsSync(join(postgres15, "initdb")) ? null : `no PostgreSQL in ${postgres15}`;
}

function missingForDisks(fs: "ext4" | "xfs"): string | null {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "needs Linux and root";
  const absent = ["losetup", "mount", "python3", `mkfs.${fs}`].find((name) => !isOnPath(name));
  return absent === undefined ? null : `${absent} is not installed`;
}

function isOnPath(name: string): boolean {
  return spawnSync("sh", ["-c", `command -v ${name}`]).status === 0;
}

const kit = ["test/conformance.test.ts"];

/** All suites of `npm run test:long`, in the order they run in. */
export const longSuites: readonly LongSuite[] = [
  ...killAppends("jsonl"),
  ...killAppends("sqlite"),
  powerCuts("jsonl", "ext4"),
  powerCuts("jsonl", "xfs"),
  powerCuts("sqlite", "ext4"),
  powerCuts("sqlite", "xfs"),
  crashKernel("ext4"),
  crashKernel("xfs"),
  ...crashStates,
  program("crash-locks", "the owner of a lock killed while others wait", "tools/crash-locks.ts", {
    full: ["--rounds", 1000],
    quick: ["--rounds", 10],
  }),
  contention("session", "8 processes on one session, some killed", ["--what", "session"]),
  contention("entries", "8 processes on the entries, some killed", ["--what", "entries"]),
  contention("entries-only", "the same without sessions.json", ["--what", "entries", "--view", "without"]),
  ...storeSuites,
  program(
    "keyed-soak",
    "repeats of keyed appends while connections and the server end",
    "packages/store-postgres/test/keyed-soak.ts",
    {
      full: [5000, 1],
      quick: [100, 1],
    },
  ),
  program(
    "server-soak",
    "nodes of the server on one PostgreSQL under load, killed and restarted",
    "tools/server-soak.ts",
    {
      full: ["--seconds", 1800],
      quick: ["--seconds", 12, "--kill-every", 4, "--restart-every", 8, "--writers", 4, "--streams", 8],
    },
  ),
  program("server-soak-short", "the same for three minutes", "tools/server-soak.ts", {
    full: ["--seconds", 185, "--writers", 8, "--streams", 24],
    quick: ["--seconds", 12, "--kill-every", 4, "--restart-every", 8, "--writers", 2, "--streams", 4],
  }),
  program("gateway-kills", "a server killed in streams of its gateway, in each mode", "tools/gateway-kills.ts", {
    full: ["--rounds", 200],
    quick: ["--rounds", 2],
  }),
  program("expressions", "every regular expression judged anew, without the table", "tools/check-expressions.ts", {
    full: ["--all"],
    quick: [],
  }),
  program("kill-import", "imports and copies killed while they write", "tools/kill-import.ts", {
    full: [100],
    quick: [2],
  }),
  program("kill-matrix", "every case of the kit against every broken store", "tools/kill-matrix.ts", {
    full: [],
    quick: [],
  }),
  tests(
    "postgres-15",
    "the tests of store-postgres on PostgreSQL 15; quick: the kit",
    { project: "packages/store-postgres", full: [], quick: kit },
    { env: { THROUGHLINE_POSTGRES_BIN: postgres15 }, missing: missingPostgres15 },
  ),
  program(
    "postgres-citus",
    "the kit and moves of shards on a coordinator and two workers of Citus",
    "tools/citus-cluster.ts",
    { full: [], quick: [] },
    missingForCitus,
  ),
  tests(
    "postgres-pooler",
    "the kit behind a pooler",
    { project: "packages/store-postgres", full: kit, quick: kit },
    {
      env: { THROUGHLINE_POOLER: "1" },
      missing: () => (isOnPath("pgbouncer") ? null : "pgbouncer is not installed"),
    },
  ),
  tests("tests-store-jsonl", "tests of store-jsonl at full size", {
    project: "packages/store-jsonl",
    full: [],
    quick: kit,
  }),
  tests("tests-store-sqlite", "tests of store-sqlite at full size", {
    project: "packages/store-sqlite",
    full: [],
    quick: kit,
  }),
  tests("tests-store-postgres", "tests of store-postgres at full size", {
    project: "packages/store-postgres",
    full: [],
    quick: kit,
  }),
  tests("tests-store-http", "the kit over HTTP, the server's sessions in each of the four stores", {
    project: "packages/store-http",
    full: [],
    quick: ["test/memory.test.ts"],
  }),
  tests(
    "tests-server",
    "1,000 slow clients, memory of endless bodies and unread streams, times of wrong tokens, 1,000 calls of the gateway, PostgreSQL away for 60 s under it, bytes on PostgreSQL",
    {
      project: "apps/server",
      full: files([
        "abuse-load",
        "abuse-gateway",
        "foreign-hosts",
        "gateway-growth.slow",
        "gateway-nodes",
        "gateway-postgres-away.slow",
        "operations",
        "sliced-work",
      ]),
      quick: ["test/abuse-rows.test.ts"],
    },
  ),
  ...["hono", "express"].map((host) =>
    tests(`tests-server-in-${host}`, `all tests of the routes with the API mounted in ${host}`, {
      project: `apps/server in ${host}`,
      full: [],
      quick: [],
    }),
  ),
  tests("tests-session", "turns killed at every step, every window, every flush, each with every provider", {
    project: "packages/session",
    full: files([
      "failed-flushes.slow",
      "kill-steps.slow",
      "killed-streams.slow",
      "large-answers",
      "long-session-work.slow",
      "model-failures",
      "processes.slow",
      "random-branches",
      "thousand-turns.slow",
      "tool-names",
      "whole-turn.slow",
      "whole-turn-kill",
    ]),
    quick: ["test/failed-flushes.slow.test.ts"],
  }),
  tests(
    "tests-encryption",
    "a process killed at every call that changes a keyring, 1,000 kills between key and payload",
    {
      project: "packages/encryption",
      full: ["test/kills.slow.test.ts"],
      quick: ["test/kills.slow.test.ts"],
    },
  ),
  tests("tests-history", "ten times the cases of history, 3,000 logs of other programs", {
    project: "packages/history",
    full: [],
    quick: ["test/foreign-fuzz.slow.test.ts"],
  }),
  tests("tests-guard", "ten times the cases of guard", {
    project: "packages/guard",
    full: ["test/classify-overflow.test.ts"],
    quick: ["test/classify-overflow.test.ts"],
  }),
  tests("tests-openclaw-compat", "every flush of a mirror", {
    project: "packages/openclaw-compat",
    full: ["test/failed-flushes.slow.test.ts"],
    quick: ["test/failed-flushes.slow.test.ts"],
  }),
  tests("tests-models", "ten times the cases of the models", {
    project: "packages/models",
    full: files(["agreement"]),
    quick: files(["agreement"]),
  }),
  tests("tests-store-conformance", "every case of the kit that may find a broken store", {
    project: "packages/store-conformance",
    full: files(["mutants"]),
    quick: files(["faults"]),
  }),
  ...adapterSuites,
  ...labSuites,
  tests("tests-adapter-claude-agent-sdk", "a mirror of 100,000 lines in eager mode, two processes, lines of 40 MiB", {
    project: "packages/adapter-claude-agent-sdk",
    full: files(["mirror-faults"]),
    quick: files(["mirror-faults"]),
  }),
  program(
    "release-dry-run",
    "every package published to a registry of this machine, installed from there, loaded and started",
    "tools/release-dry-run.ts",
    { full: [], quick: [] },
  ),
  tests(
    "tests-adapter-langgraph",
    "200 random threads, the cost of a step behind 10,000 checkpoints, kill -9 at every append, eight processes on one thread",
    {
      project: "packages/adapter-langgraph",
      full: files(["random-threads", "cost.slow", "graph", "writers.slow"]),
      quick: ["test/cost.slow.test.ts"],
    },
  ),
  tests("tests-foreign-formats", "every hostile value in every field of every format, every cut", {
    project: "packages/foreign-formats",
    full: [...files(["hostile-values"]), "test/claude-code/random-trees.slow.test.ts"],
    quick: files(["hostile-values"]),
  }),
  tests(
    "tests-transfer",
    "40 conversations from every format to every other, larger lines and contents, 300 growths of each format",
    {
      project: "packages/transfer",
      full: files([
        "cut-and-continued",
        "exported-contexts",
        "file-shapes.slow",
        "format-pairs",
        "hostile-sizes",
        "kept-readings.slow",
        "large-files.slow",
        "sync-cost.slow",
      ]),
      quick: files(["format-pairs"]),
    },
  ),
  tests("tests-file-store", "the kit with files outside of the store, 100 purges killed at random moments", {
    project: "packages/file-store",
    full: files(["conformance.slow", "killed-purges.slow"]),
    quick: files(["killed-purges.slow"]),
  }),
  tests("tests-tools", "more power cuts, all cases of both stores", {
    project: "tools",
    full: files(["bit-flips.slow", "power-cut.slow", "random-histories", "stores-and-pi.slow"]),
    quick: files(["random-histories"]),
  }),
  tests("tests-cli", "every flush, command and hidden place under the command line, each with every provider", {
    project: "apps/cli",
    full: files([
      "chat-providers.slow",
      "cut-connections.slow",
      "demo.slow",
      "denied-files.slow",
      "encrypt-existing.slow",
      "exit-codes",
      "failed-flushes.slow",
      "fifty-gauges.slow",
      "gateway",
      "hostile-texts",
      "kill-append.slow",
      "killed-approvals.slow",
      "killed-chats.slow",
      "large-imports.slow",
      "mcp",
      "sessions-apart.slow",
      "usage-agreement",
    ]),
    quick: ["test/kill-append.slow.test.ts"],
  }),
  tests("tests-inspector", "the page over a session of 1,000,000 records: elements, heap, links; `j` held for 60 s", {
    project: "apps/inspector",
    full: files(["inspector-agents.slow", "inspector-budget.slow", "inspector-installed.slow"]),
    quick: files(["inspector-budget.slow"]),
  }),
  ...["own-loop-anthropic", "own-loop-openai"].map((name) =>
    tests(`tests-${name}`, "a program with a loop of its own killed 30 times", {
      project: `examples/${name}`,
      full: [],
      quick: [],
    }),
  ),
];
