import { linkSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { seed, user } from "./harness.ts";
import type { ChatPlace } from "./model-chat.ts";

/** Stands in what no request to a provider may hold. */
export const canary = "canary-7d41";
const otherKey = "agent:main:cli:direct:other";

/** Where the home, the store and the workspace lie to each other. */
export interface Layout extends ChatPlace {
  /** Denied files, as the workspace has them; some are not there yet. */
  readonly files: readonly string[];
  /** Denied folders. */
  readonly folders: readonly string[];
  /** Where what has to stay as it is lies, without the store's own files. */
  readonly kept: readonly string[];
}

/** A home with a key in its configuration, and a store with a session that nobody speaks of. */
export async function fill(home: string, store = `sqlite:${join(home, "sessions.db")}`): Promise<void> {
  mkdirSync(home, { recursive: true });
  writeFileSync(join(home, "config.json"), `{"system": "Be brief.", "modelApiKey": "${canary}"}`);
  await seed(home, [{ key: otherKey, drafts: [user(`${canary} of another session`)] }], store);
}

export function workspaceWith(path: string, memory: Readonly<Record<string, string>> = {}): string {
  mkdirSync(join(path, "sub"), { recursive: true });
  mkdirSync(join(path, "memory"), { recursive: true });
  writeFileSync(join(path, "free.txt"), "free");
  for (const [name, target] of Object.entries(memory)) symlinkSync(target, join(path, "memory", name));
  return path;
}

export const layouts: Readonly<Record<string, (folder: string) => Promise<Layout>>> = {
  "home through a link into the workspace": async (folder) => {
    const workspace = workspaceWith(join(folder, "dot"), { "key.md": "../throughline/config.json" });
    await fill(join(workspace, "throughline"));
    mkdirSync(join(folder, "user"));
    symlinkSync(join(workspace, "throughline"), join(folder, "user/.throughline"));
    symlinkSync("throughline", join(workspace, "alias"));
    symlinkSync("throughline/config.json", join(workspace, "MEMORY.md"));
    return {
      home: join(folder, "user/.throughline"),
      workspace,
      arguments: [],
      files: ["throughline/config.json", "alias/config.json", "MEMORY.md", "throughline/sessions.db", "alias/planted"],
      folders: ["throughline", "alias"],
      kept: [join(workspace, "throughline/config.json")],
    };
  },
  "home is the workspace": async (folder) => {
    const workspace = workspaceWith(join(folder, "home"), { "key.md": "../config.json" });
    await fill(workspace);
    const beside = ["config.json.bak", "sessions.db-journal", "sessions.db-wal", "sessions.db-shm", "sync.json"];
    return {
      home: workspace,
      workspace,
      arguments: [],
      files: ["config.json", "sessions.db", "chat-history-main.jsonl", "summarizer-breakers.json", ...beside],
      folders: ["agents", "namespaces/x/agents"],
      kept: [join(workspace, "config.json")],
    };
  },
  "the workspace lies in the home": async (folder) => {
    const home = join(folder, "home");
    const workspace = workspaceWith(join(home, "work"), { "key.md": "../../config.json" });
    await fill(home);
    return {
      home,
      workspace,
      arguments: [],
      files: ["../config.json", "../sessions.db", "../sessions.db-journal"],
      folders: ["..", "../agents"],
      kept: [join(home, "config.json")],
    };
  },
  "a jsonl store is the workspace": async (folder) => {
    const workspace = workspaceWith(join(folder, "store"), { "log.md": "../agents/main/sessions/sessions.json" });
    const home = join(folder, "home");
    await fill(home, `jsonl:${workspace}`);
    const [transcript = ""] = readdirSync(join(workspace, "agents/main/sessions")).filter((name) =>
      name.endsWith(".jsonl"),
    );
    symlinkSync(join(workspace, "agents"), join(workspace, "alias"));
    linkSync(join(workspace, "agents/main/sessions", transcript), join(workspace, "memory/hard.md"));
    linkSync(join(workspace, "agents/main/sessions", transcript), join(workspace, "hard.jsonl"));
    return {
      home,
      workspace,
      arguments: ["--store", "jsonl:."],
      files: [
        `agents/main/sessions/${transcript}`,
        "agents/main/throughline/entries.log",
        "hard.jsonl",
        "memory/hard.md",
      ],
      folders: ["agents", "alias", "agents/main/sessions", "agents/other/sessions", "namespaces"],
      kept: [join(home, "config.json")],
    };
  },
  "a sqlite store and a configuration in the workspace": async (folder) => {
    const workspace = workspaceWith(join(folder, "work"), { "key.md": "../my.json", "db.md": "../data/s.db" });
    const home = join(folder, "home");
    mkdirSync(join(workspace, "data"));
    await fill(home, `sqlite:${join(workspace, "data/s.db")}`);
    writeFileSync(join(workspace, "my.json"), `{"modelApiKey": "${canary}"}`);
    symlinkSync("my.json", join(workspace, "soft"));
    linkSync(join(workspace, "my.json"), join(workspace, "memory/hard.md"));
    const beside = [
      "-journal",
      "-wal",
      "-shm",
      ".backup",
      ".v1.backup",
      ".recovery",
      ".restored.part",
      ".x.auto.backup",
      "~",
    ];
    return {
      home,
      workspace,
      arguments: ["--store", "sqlite:data/s.db", "--config", "my.json"],
      files: [
        "data/s.db",
        ...beside.map((end) => `data/s.db${end}`),
        "data/S.DB-Journal",
        "my.json",
        "my.json~",
        "soft",
        "memory/hard.md",
      ],
      folders: ["../home"],
      kept: [join(workspace, "my.json"), join(home, "config.json")],
    };
  },
  "a sqlite store in a folder that a link leads to": async (folder) => {
    const workspace = workspaceWith(join(folder, "work"));
    const home = join(folder, "home");
    mkdirSync(join(workspace, "data"));
    symlinkSync(join(workspace, "data"), join(folder, "elsewhere"));
    await fill(home, `sqlite:${join(folder, "elsewhere/s.db")}`);
    return {
      home,
      workspace,
      arguments: ["--store", "sqlite:../elsewhere/s.db"],
      files: ["data/s.db", "data/s.db-journal", "data/s.db-wal", "data/s.db-shm", "../elsewhere/s.db"],
      folders: ["../elsewhere/x"],
      kept: [join(home, "config.json")],
    };
  },
  "a jsonl store that has no session yet": async (folder) => {
    const workspace = workspaceWith(join(folder, "work"));
    const home = join(folder, "home");
    await fill(home);
    return {
      home,
      workspace,
      arguments: ["--store", "jsonl:not/yet"],
      files: ["not/yet/agents/main/sessions/planted.jsonl", "not/yet/planted"],
      folders: ["not/yet", "not/yet/agents/other/sessions"],
      kept: [join(home, "config.json")],
    };
  },
  "hidden files of other programs": async (folder) => {
    const workspace = workspaceWith(join(folder, "work"), { "env.md": "../.env" });
    const home = join(folder, "home");
    await fill(home);
    const files = [".env", ".git/config", ".npmrc", ".ssh/id_ed25519", "sub/.netrc"];
    for (const file of files) {
      mkdirSync(dirname(join(workspace, file)), { recursive: true });
      writeFileSync(join(workspace, file), `a ${canary}`);
    }
    return {
      home,
      workspace,
      arguments: [],
      files: [...files, ".git/hooks/post-checkout", ".envrc", ".bashrc", ".vscode/tasks.json", "sub/HEAD"],
      folders: [".git", ".git/hooks", ".ssh"],
      kept: [...files.map((file) => join(workspace, file)), join(home, "config.json")],
    };
  },
};
