import { readFileSync } from "node:fs";
import { createServer, type Server as HttpServer } from "node:http";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type GatewayServing, serveGateway, sha256 } from "./gateway-serving.ts";

interface Fixture {
  readonly path: string;
  readonly beta: string;
  readonly calls: readonly { readonly request: Record<string, unknown>; readonly reply: object }[];
  /** The messages of the session, in order; null where the log has branches. */
  readonly said: readonly string[] | null;
  /** What the session must hold. */
  readonly holds?: string;
}

const fixture = (name: string): Fixture =>
  JSON.parse(readFileSync(join(import.meta.dirname, "fixtures", "news-2026", `${name}.json`), "utf8")) as Fixture;

let provider: HttpServer;
let gateway: GatewayServing;
let received: { readonly headers: Record<string, unknown>; readonly body: Buffer }[] = [];
let replies: object[] = [];
beforeEach(async () => {
  received = [];
  provider = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      received.push({ headers: request.headers, body: Buffer.concat(chunks) });
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(replies.shift()));
    });
  });
  await new Promise<void>((resolve) => provider.listen(0, "127.0.0.1", resolve));
  const { port } = provider.address() as { readonly port: number };
  gateway = await serveGateway({}, {}, {}, { baseUrl: `http://127.0.0.1:${port}` });
});
afterEach(async () => {
  await gateway.close();
  provider.close();
});

/** Plays a fixture; gives the sessions of its calls, and the records of the first one. */
async function play({
  path,
  beta,
  calls,
}: Fixture): Promise<{ readonly keys: readonly string[]; readonly records: string }> {
  replies = calls.map(({ reply }) => reply);
  const keys: string[] = [];
  const sent: string[] = [];
  for (const { request, reply } of calls) {
    sent.push(JSON.stringify(request));
    const answer = await fetch(`${gateway.url}/${path}`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        authorization: `Bearer ${gateway.token}`,
        "anthropic-version": "2026-10-21",
        ...(beta === "" ? {} : { "anthropic-beta": beta }),
      },
      body: sent.at(-1) ?? "",
    });
    expect(await answer.json()).toEqual(reply);
    await gateway.calls(sent.length);
  }
  expect(received.map(({ body }) => body.toString())).toEqual(sent);
  const stored = await gateway.calls(calls.length);
  const rebuilt = await Promise.all(stored.map(async (call) => sha256(await gateway.requestOf(call))));
  expect(rebuilt.toSorted()).toEqual(received.map(({ body }) => sha256(body)).toSorted());
  keys.push(...new Set(stored.map(({ session }) => session)));
  const { body } = await gateway.serving.ask("GET", `/sessions/${keys[0]}/records?limit=500`);
  return { keys, records: JSON.stringify(body["items"]) };
}

describe("what the SDKs of 2026 send", () => {
  it.each(["threads", "system-messages", "version"])("is one conversation, byte for byte: %s", async (name) => {
    const news = fixture(name);
    const { keys, records } = await play(news);
    expect(keys).toHaveLength(1);
    const messages = (JSON.parse(records) as readonly { readonly record: Record<string, unknown> }[]).flatMap(
      ({ record }) =>
        record["type"] === "message" || String(record["customType"]).startsWith("throughline-gateway") ? [record] : [],
    );
    const said = messages.map((record) => {
      const { role, content } = (record["message"] ?? (record["data"] as Record<string, unknown>)["value"]) as {
        readonly role: string;
        readonly content: string | readonly { readonly text: string }[];
      };
      return `${role}: ${typeof content === "string" ? content : content.map(({ text }) => text).join("")}`;
    });
    expect(said).toEqual(news.said);
    for (const { headers } of received) expect(headers["anthropic-version"]).toBe("2026-10-21");
    if (news.beta !== "") expect(received[0]?.headers["anthropic-beta"]).toBe(news.beta);
  });

  it.each(["compaction-on-demand", "responses-compact"])("keeps what only the provider can read: %s", async (name) => {
    const news = fixture(name);
    const { records } = await play(news);
    expect(records).toContain(news.holds ?? "");
  });
});
