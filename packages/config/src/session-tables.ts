import type { SettingFragment } from "@throughline/core/internal";

export const storeSettings: SettingFragment = {
  area: "session",
  fields: [
    {
      key: "store",
      description: "Which store: the one to keep sessions in.",
      kind: { type: "choice", choices: ["sqlite", "jsonl", "postgres", "memory"] },
      default: "sqlite",
    },
    {
      key: "storePath",
      description:
        "Its place, used as given: the database file, the folder, or the URL of the server; null: in the home. ~/ is the user's directory.",
      kind: { type: "text", minLength: 1 },
      default: null,
    },
    {
      key: "defaultKey",
      description: "The session that chat opens without --key; null: the newest own session of the folder.",
      kind: { type: "text", minLength: 1 },
      default: null,
    },
    {
      key: "titles",
      description:
        "Who writes the title of a session after its first reply: rules, a model (one short call of a summary model, after the rules), or nobody.",
      kind: { type: "choice", choices: ["rules", "model", "off"] },
      default: "rules",
    },
    {
      key: "cacheTtlMs",
      description:
        "How long the functions of openclaw-compat may reuse loaded, unchanged entries; 0: never. They read the variable only; in a file and for commands it has no effect.",
      kind: { type: "integer", min: 0, max: 2_147_483_647 },
      default: 45_000,
      foreignVariables: ["OPENCLAW_SESSION_CACHE_TTL_MS"],
    },
  ],
};

export const inheritSettings: SettingFragment = {
  area: "session.inherit",
  fields: [
    {
      key: "enabled",
      description:
        "Whether sessions of another program are imported when there are new ones; null: asked on a terminal.",
      kind: { type: "boolean" },
      default: null,
    },
    {
      key: "source",
      description: "Where they are; null: session.storePath where that is a folder of sessions, else OpenClaw's.",
      kind: { type: "text", minLength: 1 },
      default: null,
    },
    {
      key: "format",
      description: "What they are.",
      kind: { type: "choice", choices: ["jsonl"] },
      default: "jsonl",
    },
    {
      key: "readKey",
      description: "Only the session of this key is taken over; null: all of them.",
      kind: { type: "text", minLength: 1 },
      default: null,
    },
    {
      key: "writeKey",
      description: "The key it goes on under here; null: its own.",
      kind: { type: "text", minLength: 1 },
      default: null,
    },
  ],
};

export const guardSettings: SettingFragment = {
  area: "session.guard",
  fields: [
    {
      key: "keep",
      description: "What stays of a tool result that is shortened: its beginning and end, or its beginning alone.",
      kind: { type: "choice", choices: ["head-and-tail", "head"] },
      default: "head-and-tail",
    },
    {
      key: "resultPercent",
      description:
        "The largest size of one tool result, in percent of the window at four characters a token. Without it, the size of the window decides, and all results together take at most half of it.",
      kind: { type: "integer", min: 1, max: 100 },
      default: null,
    },
  ],
};

export const turnSettings: SettingFragment = {
  area: "session.turn",
  fields: [
    {
      key: "maxSteps",
      description: "Model calls in one turn.",
      kind: { type: "integer", min: 1, max: 10_000 },
      default: 50,
    },
    {
      key: "parallelTools",
      description: "Whether the tools of one reply run at the same time.",
      kind: { type: "boolean" },
      default: true,
    },
    {
      key: "leaseMs",
      description: "How long a turn may go without a sign of life before another process may take it over.",
      kind: { type: "integer", min: 1000, max: 3_600_000 },
      default: 30_000,
    },
    {
      key: "warnAtPercents",
      description: "Shares of the window at which a prompt is announced before it is sent.",
      kind: { type: "list", of: { type: "number", above: 0, below: 100 }, minItems: 0, maxItems: 50 },
      default: [90],
    },
    {
      key: "restore",
      description:
        "What happens if an older history does not fit into the window: compact summarizes it before the first answer, cut leaves the oldest turns out of requests. The session keeps all of it.",
      kind: { type: "choice", choices: ["compact", "cut"] },
      default: "compact",
    },
    {
      key: "showContextLine",
      description:
        "Whether the system prompt ends with the line [Context: 156k/200k tokens (78%)]; null: as session.memoryFlush.showInSystemPrompt says where that is set or the memory flush is on.",
      kind: { type: "boolean" },
      default: null,
    },
  ],
};
