// What one conversation takes as it grows: an agent with a tool, whose marks of the cache move with each call. Prints the bytes
// of its records beside its content, a call's share beyond 1.3 times of it, and which records they are in. The exit code is 1
// when that is more than --most, or a request is not given back.
// node --conditions=@throughline/source lab/gateway-growth.ts [--calls 500] [--most 2000]
import { createHash } from "node:crypto";
import { createServer as createHttpServer } from "node:http";
import process from "node:process";
import { parseArgs } from "node:util";
import { createServer } from "../apps/server/src/index.ts";
import { createMemoryStore } from "../packages/store-memory/src/index.ts";

const { values } = parseArgs({
  options: { calls: { type: "string", default: "500" }, most: { type: "string", default: "2000" } },
});
const calls = Number(values.calls);
const points = [1, 10, 50, 100, 250, 500].filter((point) => point <= calls);

interface Block {
  readonly type: string;
  readonly [field: string]: unknown;
}
interface Said {
  readonly role: string;
  readonly content: readonly Block[];
}

let asked = 0;
const provider = createHttpServer((request, response) => {
  request.resume().on("end", () => {
    asked += 1;
    const content: readonly Block[] = [
      { type: "text", text: `Look ${"a".repeat(300)}` },
      { type: "tool_use", id: `toolu_${asked}`, name: "read", input: { path: `file-${asked}.txt`, lines: [1, asked] } },
    ];
    const usage = { input_tokens: 100, output_tokens: 60, cache_read_input_tokens: 5000 };
    const head = { id: `msg_${asked}`, type: "message", role: "assistant", model: "claude-opus-5" };
    response.writeHead(200, { "content-type": "application/json", "request-id": `req_${asked}` });
    response.end(JSON.stringify({ ...head, content, stop_reason: "tool_use", usage }));
  });
});
await new Promise<void>((resolve) => provider.listen(0, "127.0.0.1", resolve));
const address = provider.address();
const baseUrl = `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
const store = createMemoryStore();
const gateway = { upstreams: { anthropic: { api: "anthropic" as const, baseUrl } } };
const limits = { requestsPerMinute: 1_000_000, requestBurst: 1_000_000 };
const server = await createServer({ port: 0, openStore: () => store, gateway, limits });
const rights = { namespace: "", agents: "*", scopes: ["read", "gateway:anthropic"], expiresAtMs: null } as const;
const { text: token } = await server.tokens.create(rights, null);

const tools = Array.from({ length: 20 }, (_, index) => ({
  name: index === 0 ? "read" : `tool-${index}`,
  description: "d".repeat(200),
  input_schema: { type: "object" },
}));
const mark = { cache_control: { type: "ephemeral" } };
const system = [{ type: "text", text: "s".repeat(4000), ...mark }];
const messages: Said[] = [{ role: "user", content: [{ type: "text", text: `Begin. ${"Please. ".repeat(40)}` }] }];
const ref = { namespace: "", agentId: "main", key: "" };
const sent = new Map<string, string>();

/** The two newest messages have the marks, as agents set them. */
function marked(): readonly Said[] {
  return messages.map((message, index) => ({
    ...message,
    content: message.content.map((block, at) =>
      index >= messages.length - 2 && at === message.content.length - 1 ? { ...block, ...mark } : block,
    ),
  }));
}

async function call(number: number): Promise<void> {
  const body = JSON.stringify({ model: "claude-opus-5", max_tokens: 1000, system, tools, messages: marked() });
  const answer = await fetch(`${server.url}/anthropic/v1/messages`, {
    method: "POST",
    headers: { "throughline-token": token, "anthropic-version": "2023-06-01", "throughline-session": "growth" },
    body,
  });
  const { content } = (await answer.json()) as Said;
  ref.key = answer.headers.get("throughline-session") ?? ref.key;
  sent.set(answer.headers.get("throughline-call") ?? "", createHash("sha256").update(body).digest("hex"));
  messages.push({ role: "assistant", content });
  const result = { type: "tool_result", tool_use_id: content[1]?.["id"], content: "r".repeat(1000 + number) };
  messages.push({ role: "user", content: [result] });
}

interface Stored {
  readonly exchanges: number;
  readonly bytes: ReadonlyMap<string, number>;
}

async function stored(): Promise<Stored> {
  const bytes = new Map<string, number>();
  let exchanges = 0;
  for await (const { records } of store.read(ref))
    for (const { record } of records) {
      const kind = String(record["customType"] ?? record.type);
      if (kind === "throughline.exchange") exchanges += 1;
      // Prompts are stored once.
      if (kind !== "throughline.prompt") bytes.set(kind, (bytes.get(kind) ?? 0) + JSON.stringify(record).length);
    }
  return { exchanges, bytes };
}

let isOver = false;
process.stdout.write(
  "| calls | content | stored | over content | a call beyond 1.3 x content | in the exchange | in the call | in messages |\n",
);
process.stdout.write("| --: | --: | --: | --: | --: | --: | --: | --: |\n");
for (let number = 1; number <= calls; number++) {
  await call(number);
  if (!points.includes(number)) continue;
  let now = await stored();
  for (let waits = 0; now.exchanges < number && waits < 600; waits++) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    now = await stored();
  }
  // What the last result says is not sent yet.
  const content = JSON.stringify(messages.slice(0, -1)).length;
  const whole = [...now.bytes.values()].reduce((sum, one) => sum + one, 0);
  const beyond = (whole - 1.3 * content) / number;
  const per = (kind: string): string => ((now.bytes.get(kind) ?? 0) / number).toFixed(0);
  process.stdout.write(
    `| ${number} | ${content} | ${whole} | ${(whole / content).toFixed(2)} | ${beyond.toFixed(0)} | ${per("throughline.exchange")} | ${per("throughline.call")} | ${per("message")} |\n`,
  );
  isOver = beyond > Number(values.most);
}
let given = 0;
for (const [callId, sha256] of sent) {
  const path = `/api/v1/sessions/${ref.key}/calls/${callId}/request?payload=bytes`;
  const answer = await fetch(`${server.url}${path}`, { headers: { authorization: `Bearer ${token}` } });
  const bytes = Buffer.from(await answer.arrayBuffer());
  if (answer.status !== 200) throw new Error(`${answer.status} ${bytes.toString()}`);
  if (createHash("sha256").update(bytes).digest("hex") === sha256) given += 1;
}
process.stdout.write(`${given} of ${calls} requests given back byte for byte\n`);
if (process.env["THROUGHLINE_SHOW"] === "1")
  for await (const { records } of store.read(ref))
    for (const { record } of records.slice(-8)) process.stdout.write(`${JSON.stringify(record)}\n`);
await server.close();
provider.close();
process.exitCode = isOver || given < calls ? 1 : 0;
