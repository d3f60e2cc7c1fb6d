/** A package and where it stands. */
export interface LayerRow {
  /** The layer; imports only point to a lower one. */
  readonly layer: number;
  /** Folder name below `packages`, or `apps/<name>`; a trailing `*` stands for any ending. */
  readonly name: string;
  /** Packages it must not import although they lie lower. */
  readonly never?: readonly string[];
}

const providers: readonly string[] = ["models", "summarizer-providers"];

/** The layers of ARCHITECTURE.md. The first row that fits a name counts. */
export const layerTable: readonly LayerRow[] = [
  // The command line loads the server for the commands that start one.
  { layer: 7, name: "apps/cli" },
  { layer: 6, name: "apps/server" },
  { layer: 6, name: "apps/mcp" },
  // The page. Its code runs in browsers; its tests start the server that serves it.
  { layer: 7, name: "apps/inspector" },
  { layer: 6, name: "apps/*" },
  // The API has the gateway's checks of bodies, and rebuilds the requests that the gateway stored.
  { layer: 5, name: "http-api", never: ["store-*"] },
  { layer: 4, name: "gateway", never: ["store-*"] },
  { layer: 4, name: "agent" },
  // The facade sees stores and providers through core's ports only, so that it runs over any of them.
  { layer: 3, name: "session", never: ["store-*", ...providers] },
  { layer: 3, name: "transfer" },
  { layer: 3, name: "config" },
  { layer: 3, name: "tools" },
  { layer: 3, name: "openclaw-compat" },
  { layer: 3, name: "adapter-*" },
  { layer: 1, name: "store-kit" },
  { layer: 1, name: "store-conformance" },
  // A store does not know what records mean, so it has no business with the package that does.
  { layer: 2, name: "store-*", never: ["history"] },
  { layer: 2, name: "file-store", never: ["history"] },
  { layer: 2, name: "foreign-formats" },
  { layer: 2, name: "telemetry" },
  // It reads any store through the contract.
  { layer: 2, name: "usage", never: ["store-*"] },
  { layer: 2, name: "models" },
  { layer: 2, name: "embedders" },
  { layer: 2, name: "summarizer-providers" },
  { layer: 2, name: "guard" },
  { layer: 2, name: "checkpoint" },
  { layer: 2, name: "compaction" },
  { layer: 1, name: "history" },
  { layer: 1, name: "tokens" },
  { layer: 1, name: "policy" },
  { layer: 1, name: "transcript-view" },
  { layer: 1, name: "openclaw-format" },
  { layer: 1, name: "testing" },
  // The stores have it in their tests. It knows them through the contract.
  { layer: 1, name: "encryption" },
  { layer: 0, name: "core" },
];

/** A place that may touch the world, and why. */
export interface WorldAllowance {
  /** Path from the root; `*` stands for one file or folder name, `**` for any number. */
  readonly path: string;
  /** What may be used there; absent: everything. */
  readonly uses?: readonly string[];
  /** How many files of that pattern may use it. */
  readonly maxFiles?: number;
  readonly reason: string;
}

/** Where clock, randomness, environment and files may be touched. Everything else takes them from core's ports. */
export const worldAllowances: readonly WorldAllowance[] = [
  { path: "apps/**", reason: "an app reads its environment and wires the real ports" },
  { path: "packages/core/src/node/**", reason: "the real ports: the one place where the world comes in" },
  { path: "packages/store-jsonl/src/**", uses: ["node:fs"], maxFiles: 2, reason: "the store's files are its purpose" },
  {
    path: "packages/store-conformance/src/faults/**",
    uses: ["node:fs"],
    maxFiles: 1,
    reason: "fault helpers damage files on purpose, for the tests of stores",
  },
  {
    path: "packages/store-sqlite/src/**",
    uses: ["node:fs"],
    maxFiles: 1,
    reason: "one file prepares and looks at the database file before SQLite has it",
  },
  {
    path: "packages/store-postgres/src/backup-store.ts",
    uses: ["node:fs"],
    maxFiles: 1,
    reason: "a backup is a file",
  },
  {
    path: "packages/transfer/src/**",
    uses: ["node:fs"],
    maxFiles: 8,
    reason:
      "reads, watches and writes foreign directories, reads foreign databases, finds the places of other programs, and keeps long results and the list of read files in files",
  },
  {
    path: "packages/config/src/node/**",
    uses: ["node:fs"],
    maxFiles: 1,
    reason: "one file reads the configuration file, and says why a path of a setting cannot be used",
  },
  {
    path: "packages/session/src/process-owners.ts",
    uses: ["node:fs"],
    maxFiles: 1,
    reason: "the default owner port asks /proc whether the process that left a turn open is gone",
  },
  {
    path: "packages/http-api/src/security/secret-bytes.ts",
    uses: ["node:crypto randomBytes"],
    maxFiles: 1,
    reason: "tokens and the key of cursors are secrets of 32 bytes, which the port for randomness does not give",
  },
  {
    path: "packages/encryption/src/secret-bytes.ts",
    uses: ["node:crypto randomBytes"],
    maxFiles: 1,
    reason: "keys, salts and nonces are secrets, which the port for randomness does not give",
  },
  {
    path: "packages/encryption/src/keyring-file.ts",
    uses: ["node:fs"],
    maxFiles: 1,
    reason: "one file creates the file of a keyring, with its mode, and looks whether it is still there",
  },
  {
    path: "packages/gateway/src/**",
    uses: ["node:fs"],
    maxFiles: 2,
    reason: "the journal is files: one writes and removes them, one knows what is in each",
  },
  {
    path: "packages/agent/src/node/**",
    uses: ["node:fs", "process.env"],
    maxFiles: 5,
    reason:
      "an agent reads the environment when no port is given, compares folders, keeps state in its home, and reads files that a person names and those of a project: one file each",
  },
  {
    path: "packages/models/src/system-environment.ts",
    uses: ["process.env"],
    maxFiles: 1,
    reason: "providers read their API keys from the environment of the process, when no port is given",
  },
  {
    path: "packages/openclaw-compat/src/**",
    uses: ["process.env"],
    maxFiles: 1,
    reason: "the functions by OpenClaw's names take no ports: one file reads the environment, as OpenClaw does",
  },
  {
    path: "packages/openclaw-compat/src/node/**",
    uses: ["node:fs"],
    maxFiles: 1,
    reason: "a configured path may be a file of OpenClaw, which is refused before a store is opened beside it",
  },
  {
    path: "packages/tools/src/workspace/**",
    uses: ["node:fs"],
    maxFiles: 3,
    reason:
      "one file is the only way to the files of a workspace, one holds the folders on the way, one looks up what is denied",
  },
];

/** Where a library may be imported; one that is not named here may be imported wherever it is declared. */
export const importAllowances: readonly {
  readonly module: string;
  readonly paths: readonly string[];
  readonly reason: string;
}[] = [
  {
    module: "zod",
    paths: ["packages/config/src/**", "packages/http-api/src/**", "apps/**"],
    reason: "zod guards doors; replay uses hand-written structural checks",
  },
];

/** Packages whose root may export more values than others, and why. */
export const rootExportAllowances: readonly {
  readonly name: string;
  readonly rootExports: number;
  readonly reason: string;
}[] = [
  {
    name: "core",
    rootExports: 50,
    reason: "everything about sessions over any store is in one entry point, so that nobody has to look in several",
  },
];

/** Source files that are longer than others may be, up to `limits.longFileLines`, and why they are one file. */
export interface LongFile {
  readonly path: string;
  readonly reason: string;
}

export const longFiles: readonly LongFile[] = [];

/**
 * How many levels of files a package may have, one importing the next, types included. For packages that were towers: a reader
 * of a file at the top has all below it to know.
 */
export const levelLimits: readonly { readonly name: string; readonly levels: number }[] = [
  { name: "store-jsonl", levels: 13 },
  { name: "store-sqlite", levels: 15 },
];

/** Hard limits of every package. */
export const limits: {
  readonly fileLines: number;
  /** Of a file that `longFiles` gives a reason for. */
  readonly longFileLines: number;
  readonly rootExports: number;
  readonly packageDependencies: number;
  readonly appDependencies: number;
} = { fileLines: 400, longFileLines: 500, rootExports: 25, packageDependencies: 2, appDependencies: 12 };

const packageFiles = ["README.md", "SPEC.md", "THIRD_PARTY.md", "package.json", "tsconfig.json", "src", "test"];

/** What a package folder may hold. SPEC.md belongs to state machines, THIRD_PARTY.md names parts of others. */
export const allowedEntries: { readonly packages: ReadonlySet<string>; readonly apps: ReadonlySet<string> } = {
  packages: new Set(packageFiles),
  apps: new Set([...packageFiles, "bin"]),
};

/** What tools leave behind in a package folder. */
export const ignoredEntries: ReadonlySet<string> = new Set(["dist", "node_modules", ".turbo"]);

/** The row of a package, by the name the table uses; null for a package the table does not know. */
export function layerOf(name: string): LayerRow | null {
  return layerTable.find((row) => matchesName(row.name, name)) ?? null;
}

/** True when `pattern`, whose trailing `*` stands for any ending, fits `name`. */
export function matchesName(pattern: string, name: string): boolean {
  return pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : pattern === name;
}
