import type { CommandDefinition } from "../command.ts";
import { allAgents, folder, here, optionalKeyArgument } from "../common-options.ts";
import { parseAge, parseCount } from "../option-values.ts";

export const serverCommands: readonly CommandDefinition[] = [
  {
    name: "ui",
    description: "see any session in a browser: lists, search, transcripts, files and usage",
    isService: true,
    arguments: [optionalKeyArgument],
    options: [
      { flags: "--at <n>", description: "with KEY: at record n", parse: parseCount },
      allAgents,
      { flags: "--no-open", description: "print the address, and open no browser" },
      { flags: "--exit-when-idle", description: "end 10 minutes after the last tab was closed" },
      { flags: "--no-sync", description: "import nothing from other programs while this runs" },
    ],
    exitCodes: { PATH_UNSAFE: 2 },
    examples: ["ui", "ui notes --no-open"],
    load: () => import("../commands/ui.ts"),
  },
  {
    name: "serve",
    description: "serve the store over HTTP until it is interrupted, on loopback unless told otherwise",
    isService: true,
    arguments: [],
    options: [
      { flags: "--host <address>", description: "the address to listen on (default: 127.0.0.1)" },
      { flags: "--port <n>", description: "the port; 0 takes a free one (default: 4788)" },
      { flags: "--public-url <url>", description: "the address that clients use, behind a proxy" },
      { flags: "--token-file <file>", description: "a token that may do everything, in a file that only you can read" },
      { flags: "--sync", description: "keep importing what the programs on this machine write" },
    ],
    settings: {
      host: "server.host",
      port: "server.port",
      publicUrl: "server.publicUrl",
      tokenFile: "server.tokenFile",
    },
    exitCodes: { PATH_UNSAFE: 2 },
    examples: ["serve", "serve --port 0 --json"],
    load: () => import("../commands/serve.ts"),
  },
  {
    name: "mcp",
    description: "give MCP clients memory of past sessions: over stdin and stdout, or over HTTP on loopback",
    isService: true,
    arguments: [],
    options: [
      { flags: "--http [address]", description: "over HTTP, on a loopback HOST:PORT (default: 127.0.0.1:4789)" },
      { flags: "--all-agents", description: "the sessions of every agent of the namespace" },
      { flags: "--key-prefixes <list>", description: "only sessions whose key begins with one of these" },
      here,
      folder,
      { flags: "--allow-notes", description: "clients may store notes" },
      { flags: "--workspace <dir>", description: "the folder whose memory files are searched (default: none)" },
      { flags: "--no-sync", description: "import nothing from other programs while this runs" },
    ],
    settings: { keyPrefixes: "mcp.keyPrefixes", folder: "mcp.folder", workspace: "workspace" },
    examples: ["mcp", "mcp --http 127.0.0.1:0"],
    load: () => import("../commands/mcp.ts"),
  },
  {
    name: "token",
    description: "make, list and revoke the tokens of a server; works on its store, and over HTTP",
    arguments: [
      { name: "[action]", description: "create, list or revoke (default: list)" },
      { name: "[name]", description: "create: what it is for; revoke: the id of the token" },
    ],
    options: [
      {
        flags: "--scopes <list>",
        description:
          "of create: read, write, delete, metrics, admin, gateway:NAME, with commas between (default: read,write)",
      },
      { flags: "--agents <list>", description: "of create: only sessions of these agents (default: of all)" },
      { flags: "--all-namespaces", description: "of create: each request names its namespace" },
      {
        flags: "--expires <age>",
        description: "of create: valid for so long: 12h, 30d (default: for ever)",
        parse: parseAge,
      },
      {
        flags: "--mode <mode>",
        description:
          "of create: record, guard or stateful for its calls through the gateway (default: what the upstream says)",
      },
      { flags: "--all", description: "of list: tokens that were revoked or have expired too" },
    ],
    examples: [
      "token create laptop --scopes read,write --expires 30d",
      "token create agent --scopes gateway:anthropic",
    ],
    load: () => import("../commands/token.ts"),
  },
];
