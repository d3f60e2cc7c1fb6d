import type { CommandDefinition } from "../command.ts";

export const storeCommands: readonly CommandDefinition[] = [
  {
    name: "doctor",
    description: "say what is wrong with the store, or with transcripts that were not imported",
    arguments: [{ name: "[path]", description: "a file or directory instead of the store" }],
    options: [
      {
        flags: "--repair",
        description: "write what can be read to a new file beside each that needs it; originals stay",
      },
    ],
    afterInterrupt: "What was printed holds; the rest was not looked at. Originals are as they were. Run it again.",
    examples: ["doctor", "doctor session.jsonl --repair --json"],
    load: () => import("../commands/doctor.ts"),
  },
  {
    name: "verify",
    description: "read the whole store and say what cannot be what was written; changes nothing",
    arguments: [],
    options: [{ flags: "--full", description: "every record's checksum too, where the store can" }],
    afterInterrupt: "What was printed holds; the rest was not looked at. Run it again.",
    examples: ["verify", "verify --full --json"],
    load: () => import("../commands/verify.ts"),
  },
  {
    name: "reindex",
    description: "rebuild the search index, or the files derived from the sessions",
    arguments: [],
    options: [],
    afterInterrupt: "The records are as they were; run it again, or let the next search index the rest.",
    examples: ["reindex", "reindex --json"],
    load: () => import("../commands/reindex.ts"),
  },
  {
    name: "backup",
    description: "write a consistent copy of the store to a new file while others go on writing",
    arguments: [{ name: "<file>", description: "a file that is not there yet" }],
    options: [],
    afterInterrupt: "There is no backup: nothing has the name of the file. Run it again.",
    examples: ["backup sessions-backup.db", "backup sessions-backup-2.db --json"],
    load: () => import("../commands/backup.ts"),
  },
  {
    name: "restore-backup",
    description:
      "put a backup in the place of the store, with --yes where there is one; what was there is kept beside it",
    arguments: [{ name: "<file>", description: "what `backup` wrote" }],
    options: [],
    examples: ["restore-backup monday.db --store sqlite:restored.db", "restore-backup monday.db --yes --json"],
    load: () => import("../commands/restore-backup.ts"),
  },
  {
    name: "encryption",
    description: "create the keyring of encrypted stores, replace its keys, erase an agent, check a proof of deletion",
    arguments: [
      { name: "[action]", description: "status (default), init, rotate, export-key, shred or check" },
      { name: "[file]", description: "for check: what --proof wrote" },
    ],
    options: [
      {
        flags: "--keyring <file>",
        description: "for init: the file to create (default: encryption.keyring, else keys.db)",
      },
      {
        flags: "--main-key <source>",
        description: "file:PATH, which init creates, env:NAME or prompt (default: encryption.mainKey)",
      },
      { flags: "--new-main-key <source>", description: "for rotate: where the new one comes from (default: prompt)" },
      {
        flags: "--scope <what>",
        description: "for init: what one key encrypts, and so what is erased alone (default: session)",
        choices: ["session", "agent", "namespace"],
      },
      { flags: "--proof <file>", description: "for shred: write the proof to a new file (default: print it)" },
      { flags: "--reason <text>", description: "for shred: what the proof says; name no person in it" },
    ],
    settings: { keyring: "encryption.keyring", mainKey: "encryption.mainKey", scope: "encryption.scope" },
    afterInterrupt: "The keyring opens as before, or with the new main key. `throughline encryption` says which it is.",
    examples: [
      "encryption init --main-key file:main.key",
      "encryption status --keyring keys.db --main-key file:main.key --json",
    ],
    load: () => import("../commands/encryption.ts"),
  },
  {
    name: "stats",
    description: "count what is in the store, from its index",
    arguments: [],
    options: [
      {
        flags: "--activity",
        description: "messages, tools and cost by program and folder, the longest sessions, and the last 14 days",
      },
    ],
    examples: ["stats", "stats --agent main --json"],
    load: () => import("../commands/stats.ts"),
  },
];
