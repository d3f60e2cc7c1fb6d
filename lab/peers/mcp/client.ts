// A client of one line of the MCP SDK: calls everything that `throughline mcp` offers, and prints the answers as JSON.
// Run by lab/mcp-clients.ts in a folder that has the packages: node client.ts PACKAGE GENERATION TARGET
import process from "node:process";

const [packageName = "", generation = "", targetText = ""] = process.argv.slice(2);

/** How the server is reached: a command, or an address and a token. */
interface Target {
  readonly command?: string;
  readonly args?: readonly string[];
  readonly url?: string;
  readonly token?: string;
}

const target = JSON.parse(targetText) as Target;
const isFirst = packageName.startsWith("v1");
/** What of the modules of either line is used: what they export differs in its types, not in its names. */
interface Modules {
  readonly Client: new (info: object, options: object) => Client;
  readonly StdioClientTransport: new (options: object) => object;
  readonly StreamableHTTPClientTransport: new (url: URL, options: object) => object;
}

interface Client {
  connect(transport: object): Promise<void>;
  close(): Promise<void>;
  getServerVersion(): { readonly name: string };
  listTools(): Promise<{ readonly tools: readonly object[] }>;
  callTool(call: object): Promise<Readonly<Record<string, unknown>>>;
  listResources(): Promise<{ readonly resources: readonly object[] }>;
  readResource(resource: { readonly uri: string }): Promise<{ readonly contents: readonly object[] }>;
}

const load = async (path: string): Promise<Modules> => (await import(path)) as Modules;
const { Client } = await load(isFirst ? `${packageName}/client/index.js` : packageName);
const { StdioClientTransport } = await load(isFirst ? `${packageName}/client/stdio.js` : `${packageName}/stdio`);
const { StreamableHTTPClientTransport } = await load(isFirst ? `${packageName}/client/streamableHttp.js` : packageName);

const transport =
  target.url === undefined
    ? new StdioClientTransport({ command: target.command, args: target.args, env: process.env, stderr: "inherit" })
    : new StreamableHTTPClientTransport(new URL(target.url), {
        requestInit: { headers: { authorization: `Bearer ${target.token ?? ""}` } },
      });
const options = generation === "2026-07-28" ? { versionNegotiation: { mode: { pin: generation } } } : {};
const client = new Client({ name: packageName, version: "1" }, options);
await client.connect(transport);

const key = "agent:main:cli:direct:kafka";
const call = async (name: string, args: Record<string, unknown>): Promise<unknown> => {
  const { content, structuredContent, isError } = await client.callTool({ name, arguments: args });
  return { content, structuredContent, isError: isError === true };
};
const answers = {
  server: client.getServerVersion().name,
  tools: (await client.listTools()).tools,
  search: await call("search_sessions", { query: "rotate" }),
  read: await call("read_session", { key }),
  list: await call("list_sessions", { limit: 1 }),
  memory: await call("read_memory", {}),
  note: await call("add_note", { topic: "kafka", text: "on Mondays" }),
  noted: await call("read_memory", { query: "mondays" }),
  missing: await call("read_session", { key: "agent:work:cli:direct:plans" }),
  invalid: await call("search_sessions", { query: "x".repeat(5000) }),
  unknown: await call("nothing", {}).catch(() => "refused"),
  resources: (await client.listResources()).resources.length,
  resource: (await client.readResource({ uri: `throughline://session/${encodeURIComponent(key)}` })).contents,
};
await client.close();
process.stdout.write(JSON.stringify(answers));
