import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer as createProxy, request as httpRequest } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { connect, type AddressInfo, type Server } from "node:net";
import { join } from "node:path";
import { createProviderSimulator } from "@throughline/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { assistant, runChild, runHere, seed, start, temporaryDirectory, user } from "./harness.ts";

let directory = temporaryDirectory();
const closing: (() => unknown)[] = [];
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
  directory.remove();
});

const summary = "Topics:\n- quays\nDecisions:\n- no red paint\nCurrent state:\n- painted\nOpen items:\n- none";

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(() => server.close());
  return (server.address() as AddressInfo).port;
}

/** A provider behind TLS, with a certificate for `provider.test` of an authority that nobody knows. */
async function secureProvider(): Promise<{ readonly port: number; readonly authority: string }> {
  const simulator = createProviderSimulator({ fallback: () => summary });
  await simulator.start();
  closing.push(() => simulator.close());
  const [key, authority] = [join(directory.path, "key.pem"), join(directory.path, "authority.pem")];
  const names = ["-subj", "/CN=provider.test", "-addext", "subjectAltName=DNS:provider.test"];
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
  const files = ["-keyout", key, "-out", authority, "-days", "2", "-nodes"];
  execFileSync("openssl", ["req", "-x509", ...curve, ...files, ...names], { stdio: "ignore" });
  const server = createSecureServer({ key: readFileSync(key), cert: readFileSync(authority) }, (request, response) => {
    const { method, url: path, headers } = request;
    const passed = httpRequest(`${simulator.url}${path}`, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    request.pipe(passed);
  });
  return { port: await listening(server), authority };
}

/** A proxy that alone knows where `provider.test` is. */
async function proxy(asked: string[]): Promise<string> {
  const server = createProxy((_request, response) => response.writeHead(405).end());
  server.on("connect", ({ url = "" }, client) => {
    asked.push(url);
    const upstream = connect(Number(url.split(":")[1]), "127.0.0.1", () => {
      client.write("HTTP/1.1 200 Connection Established\r\n\r\n");
      upstream.pipe(client).pipe(upstream);
    });
    for (const socket of [client, upstream]) socket.on("error", () => void [client.destroy(), upstream.destroy()]);
  });
  return `http://127.0.0.1:${await listening(server)}`;
}

async function serve(
  environment: Readonly<Record<string, string>>,
): Promise<{ readonly url: string; stop(): unknown }> {
  const child = start(directory.path, ["serve", "--port", "0", "--json"], { environment });
  let stdout = "";
  child.stdout.on("data", (chunk) => (stdout += chunk));
  child.stderr.resume();
  const ended = new Promise((resolve) => child.on("close", resolve));
  const stop = (): unknown => {
    child.kill("SIGTERM");
    return ended;
  };
  closing.push(stop);
  await expect.poll(() => stdout).toContain("\n");
  return { url: String((JSON.parse(stdout) as { readonly url: unknown }).url), stop };
}

async function compacted(url: string): Promise<Readonly<Record<string, unknown>>> {
  const { token } = JSON.parse(readFileSync(join(directory.path, "server.json"), "utf8")) as { readonly token: string };
  const answer = await fetch(`${url}/api/v1/sessions/quays/compact`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ window: 8000 }),
  });
  return (await answer.json()) as Readonly<Record<string, unknown>>;
}

describe("a store behind HTTP", () => {
  it("is reached through the proxy that the environment names", async () => {
    await seed(directory.path, [{ key: "quays", drafts: [user("Quay?")] }]);
    const { url } = await serve({});
    const { token } = JSON.parse(readFileSync(join(directory.path, "server.json"), "utf8")) as {
      readonly token: string;
    };
    const asked: string[] = [];
    const { host } = new URL(url.replace("127.0.0.1", "localhost"));
    const run = await runChild(directory.path, ["sessions", "--json", "--store", `http://${host}`], {
      environment: { THROUGHLINE_TOKEN: token, HTTP_PROXY: await proxy(asked), NODE_USE_ENV_PROXY: "1" },
    });
    expect([run.code, new Set(asked)]).toEqual([0, new Set([host])]);
    expect(run.stdout).toContain('"key":"quays"');
  });
});

describe("models that a server asks for summaries", () => {
  const talk = Array.from({ length: 30 }, (_, at) => [
    user(`Quay ${at}? ${"words ".repeat(90)}`),
    assistant(`Quay ${at}: done.`),
  ]).flat();

  it("are those of the settings, through a proxy and with an authority of one's own", async () => {
    const { port, authority } = await secureProvider();
    const asked: string[] = [];
    const proxyUrl = await proxy(asked);
    const settings = { session: { compaction: { summaryModels: ["anthropic/claude-haiku-4-5"] } } };
    writeFileSync(join(directory.path, "config.json"), JSON.stringify(settings));
    await seed(directory.path, [{ key: "quays", drafts: talk }]);
    const provider = { ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: `https://provider.test:${port}` };
    const { url } = await serve({
      ...provider,
      HTTPS_PROXY: proxyUrl,
      NODE_USE_ENV_PROXY: "1",
      NODE_EXTRA_CA_CERTS: authority,
    });
    expect(await compacted(url)).toMatchObject({
      state: "compacted",
      source: "model",
      provider: "anthropic/claude-haiku-4-5",
    });
    expect(new Set(asked)).toEqual(new Set([`provider.test:${port}`]));
  });

  it("are reached the same way by the gateway", async () => {
    const { port, authority } = await secureProvider();
    const asked: string[] = [];
    const environment = { HTTPS_PROXY: await proxy(asked), NODE_EXTRA_CA_CERTS: authority, PROVIDER_KEY: "sk-test" };
    const upstream = { api: "anthropic", baseUrl: `https://provider.test:${port}`, apiKeyEnv: "PROVIDER_KEY" };
    writeFileSync(join(directory.path, "config.json"), JSON.stringify({ gateway: { upstreams: { a: upstream } } }));
    const { stdout } = await runHere(directory.path, ["token", "create", "x", "--scopes", "gateway:a", "--quiet"]);
    const ask = async (url: string): Promise<number> => {
      const { status } = await fetch(`${url}/a/v1/messages`, {
        method: "POST",
        headers: { "x-api-key": stdout.trim(), "content-type": "application/json", "anthropic-version": "2023-06-01" },
        body: JSON.stringify({ model: "m", max_tokens: 9, messages: [{ role: "user", content: "Hi" }] }),
      });
      return status;
    };
    // Without the switch the variables mean nothing here, and nobody but the proxy knows the name.
    const direct = await serve(environment);
    expect([await ask(direct.url), asked]).toEqual([502, []]);
    await direct.stop();
    const { url } = await serve({ ...environment, NODE_USE_ENV_PROXY: "1" });
    expect([await ask(url), asked]).toEqual([200, [`provider.test:${port}`]]);
  });

  it("are none without a key: rules extract the summary", async () => {
    const settings = { model: "anthropic/claude-opus-5" };
    writeFileSync(join(directory.path, "config.json"), JSON.stringify(settings));
    await seed(directory.path, [{ key: "quays", drafts: talk }]);
    const { url } = await serve({});
    expect(await compacted(url)).toMatchObject({ state: "compacted", source: "extractive" });
  });
});
