import { tableOf, type SettingTable } from "./setting-definition.ts";

const names = { type: "list", minItems: 0, maxItems: 20, of: { type: "text", minLength: 1 } } as const;

const { area, settings } = tableOf({
  area: "mcp",
  fields: [
    {
      key: "agents",
      description: 'Agents whose sessions MCP clients see; none: the agent in force; ["*"]: all of the namespace.',
      kind: names,
      default: [],
    },
    {
      key: "keyPrefixes",
      description: "MCP clients see only sessions whose key begins with one of these; none: every session.",
      kind: names,
      default: [],
    },
    {
      key: "folder",
      description:
        "MCP clients see only sessions of this folder and the folders below it; `.` is the folder in which the client starts the command. Without it, of all folders.",
      kind: { type: "text", minLength: 1 },
      default: null,
    },
    {
      key: "notes",
      description: "Whether MCP clients may store notes.",
      kind: { type: "boolean" },
      default: false,
    },
    {
      key: "resultTokens",
      description: "The most tokens of one result for an MCP client, as estimated.",
      kind: { type: "integer", min: 500, max: 25_000 },
      default: 5000,
    },
    {
      key: "callTimeoutMs",
      description: "Milliseconds after which a call of an MCP client is answered with what was found until then.",
      kind: { type: "integer", min: 100, max: 600_000 },
      default: 30_000,
    },
  ],
});

const flags: Readonly<Record<string, string>> = {
  "mcp.keyPrefixes": "--key-prefixes",
  "mcp.folder": "--folder",
};

export const mcpSettings: SettingTable = {
  area,
  settings: settings.map((setting) => ({ ...setting, flag: flags[setting.key] ?? null })),
};
