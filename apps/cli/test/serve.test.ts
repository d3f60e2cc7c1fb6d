import { chmodSync, existsSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { freePort } from "../../../tools/free-port.ts";
import { objects, runHere, start, temporaryDirectory } from "./harness.ts";

let directory = temporaryDirectory();
let running: Serving[] = [];
beforeEach(() => {
  directory = temporaryDirectory();
  running = [];
});
afterEach(async () => {
  for (const { child, ended } of running) {
    child.kill("SIGKILL");
    await ended;
  }
  directory.remove();
});

interface Serving {
  readonly child: ChildProcessWithoutNullStreams;
  readonly url: string;
  readonly ended: Promise<number | null>;
  readonly output: () => string;
}

/** Starts a server in a process of its own, and waits until it says that it listens. */
async function serve(args: readonly string[] = [], home = directory.path): Promise<Serving> {
  const child = start(home, ["serve", "--port", "0", "--json", ...args]);
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk) => (stdout += chunk));
  child.stderr.on("data", (chunk) => (stderr += chunk));
  const ended = new Promise<number | null>((resolve) => child.on("close", resolve));
  void ended.then(() => (stdout += "\n"));
  await expect.poll(() => stdout).toContain("\n");
  const [line = ""] = stdout.split("\n");
  const serving = { child, ended, output: () => stdout + stderr, url: "" };
  running.push(serving);
  if (line === "") return serving;
  return { ...serving, url: String((JSON.parse(line) as { url: unknown }).url) };
}

const serverFile = (): string => join(directory.path, "server.json");
const readFile = (): { readonly url: string; readonly token: string; readonly pid: number } =>
  JSON.parse(readFileSync(serverFile(), "utf8")) as ReturnType<typeof readFile>;
const ask = (url: string, path: string, token: string): Promise<Response> =>
  fetch(`${url}${path}`, { headers: { authorization: `Bearer ${token}` } });

describe("serve", () => {
  it(
    "listens on loopback, leaves its address and a token for its user, and removes both when it stops",
    { tags: ["slow"] },
    async () => {
      const { child, url, ended, output } = await serve();
      const file = readFile();
      expect([new URL(url).hostname, file.url, file.pid]).toEqual(["127.0.0.1", url, child.pid]);
      expect(statSync(serverFile()).mode & 0o777).toBe(0o600);
      expect((await ask(url, "/api/v1/store", file.token)).status).toBe(200);
      expect(output()).not.toContain(file.token);
      child.kill("SIGTERM");
      expect(await ended).toBe(0);
      expect(existsSync(serverFile())).toBe(false);
      expect(output()).not.toContain(file.token.slice(-40));
      const { stdout } = await runHere(directory.path, ["token", "list", "--all", "--json"]);
      expect(objects(stdout)[0]).toMatchObject({ label: "server.json", revokedAtMs: expect.any(Number), secret: null });
      expect(objects((await runHere(directory.path, ["token", "list", "--json"])).stdout)).toHaveLength(1);
    },
  );

  it.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)(
    "ends streams that are open with bye on %s",
    { tags: ["slow"] },
    async (signal) => {
      const { child, url, ended } = await serve();
      await runHere(directory.path, ["append", "notes"], { stdin: '{"type":"note"}\n' });
      const response = await ask(url, "/api/v1/sessions/notes/events", readFile().token);
      const text = response.text();
      child.kill(signal);
      expect(await ended).toBe(0);
      expect(await text).toMatch(/event: hello[^]*event: bye\ndata: \{"retryMs":\d+\}\n\n$/);
    },
  );

  it("ends a request that runs before it stops, and at once at the second signal", { tags: ["slow"] }, async () => {
    const { child, url, ended } = await serve();
    const { token } = readFile();
    const body = JSON.stringify({ drafts: [{ type: "note" }] });
    await runHere(directory.path, ["append", "notes"], { stdin: '{"type":"note"}\n' });
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    let answer = "";
    socket.on("data", (chunk) => (answer += String(chunk)));
    const head = `POST /api/v1/sessions/notes/records HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\n`;
    socket.write(`${head}content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body.slice(0, 5)}`);
    await new Promise((resolve) => setTimeout(resolve, 300));
    child.kill("SIGTERM");
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(child.exitCode).toBeNull();
    socket.write(body.slice(5));
    await expect.poll(() => answer).toContain("201 Created");
    socket.destroy();
    expect(await ended).toBe(0);

    const second = await serve();
    const open = connect(Number(new URL(second.url).port), "127.0.0.1");
    open.on("error", () => {});
    open.write(`POST /api/v1/sessions/notes/records HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n`);
    await new Promise((resolve) => setTimeout(resolve, 300));
    second.child.kill("SIGINT");
    await new Promise((resolve) => setTimeout(resolve, 300));
    second.child.kill("SIGINT");
    expect(await second.ended).toBe(130);
    open.destroy();
  });

  it("is the only server of a home, and takes the place of one that was killed", { tags: ["slow"] }, async () => {
    const first = await serve();
    const { token } = readFile();
    const refused = await serve();
    expect(await refused.ended).toBe(1);
    expect(refused.output()).toContain('"code":"SERVER_RUNNING"');
    expect(readFile().token).toBe(token);
    first.child.kill("SIGKILL");
    await first.ended;
    const third = await serve();
    expect(readFile()).toMatchObject({ pid: third.child.pid, url: third.url });
    // Nobody holds the token of the killed server any more.
    expect((await ask(third.url, "/api/v1/store", token)).status).toBe(401);
  });

  it("names a port that another program has", async () => {
    const first = await serve();
    const other = temporaryDirectory();
    const { code, stderr } = await runHere(other.path, ["serve", "--port", new URL(first.url).port, "--json"]);
    expect([code, objects(stderr).at(-1)?.["code"]]).toEqual([1, "ADDRESS_UNAVAILABLE"]);
    expect(existsSync(join(other.path, "server.json"))).toBe(false);
    other.remove();
  });

  it("row 4: listens on no other address before there is a token", async () => {
    const port = await freePort();
    const refused = await runHere(directory.path, ["serve", "--host", "0.0.0.0", "--port", String(port)]);
    expect([refused.code, refused.stdout]).toEqual([2, ""]);
    await expect(fetch(`http://127.0.0.1:${port}/healthz`)).rejects.toMatchObject({ cause: { code: "ECONNREFUSED" } });
    const remedy = /`throughline (token create NAME)`/.exec(refused.stderr)?.[1] ?? "";
    expect((await runHere(directory.path, remedy.split(" "))).code).toBe(0);
    const { child, ended, url } = await serve(["--host", "0.0.0.0"]);
    expect(new URL(url).hostname).toBe("127.0.0.1");
    child.kill("SIGTERM");
    expect(await ended).toBe(0);
  });

  it("row 5: takes a token from a file that only its user can read", async () => {
    const { stdout } = await runHere(directory.path, ["token", "create", "x", "--store", "sqlite:elsewhere.db"]);
    const file = join(directory.path, "secret");
    writeFileSync(file, stdout, { mode: 0o640 });
    const open = await runHere(directory.path, ["serve", "--token-file", file, "--port", "0", "--json"]);
    expect([open.code, objects(open.stderr).at(-1)?.["code"]]).toEqual([2, "PATH_UNSAFE"]);
    chmodSync(file, 0o600);
    const { url } = await serve(["--host", "0.0.0.0", "--token-file", file]);
    expect((await ask(url, "/api/v1/store", stdout.trim())).status).toBe(200);
  });

  it("closes a home that others can read, unless a secret lies in it", async () => {
    const attempt = async (): Promise<readonly unknown[]> => {
      const { code, stderr } = await runHere(directory.path, ["serve", "--port", "0", "--json", "--timeout", "500"]);
      return [code, objects(stderr).find(({ kind }) => kind === "error")?.["code"]];
    };
    const modeOf = (): number => statSync(directory.path).mode & 0o777;
    writeFileSync(join(directory.path, "config.json"), '{"agent":"main"}');
    chmodSync(directory.path, 0o775);
    const { child, ended } = await serve();
    expect(modeOf()).toBe(0o700);
    expect(readFile().pid).toBe(child.pid);
    child.kill("SIGTERM");
    await ended;
    chmodSync(directory.path, 0o755);
    writeFileSync(join(directory.path, "config.json"), `{"server":{"cursorKey":"${"a".repeat(64)}"}}`);
    expect(await attempt()).toEqual([2, "PATH_UNSAFE"]);
    expect(modeOf()).toBe(0o755);
  });

  it("row 5: refuses a home that others can read and that holds a token, and a server.json that is a link or open", async () => {
    const attempt = async (): Promise<readonly unknown[]> => {
      const { code, stderr } = await runHere(directory.path, ["serve", "--port", "0", "--json", "--timeout", "500"]);
      return [code, objects(stderr).find(({ kind }) => kind === "error")?.["code"]];
    };
    chmodSync(directory.path, 0o750);
    writeFileSync(serverFile(), "{}", { mode: 0o600 });
    expect(await attempt()).toEqual([2, "PATH_UNSAFE"]);
    rmSync(serverFile());
    chmodSync(directory.path, 0o700);
    const target = join(directory.path, "target");
    writeFileSync(target, "untouched", { mode: 0o600 });
    symlinkSync(target, serverFile());
    expect(await attempt()).toEqual([2, "PATH_UNSAFE"]);
    expect(readFileSync(target, "utf8")).toBe("untouched");
  });

  it("replaces a server.json that no server wrote", { tags: ["slow"] }, async () => {
    writeFileSync(serverFile(), '{"url":"http://127.0.0.1:1","tok', { mode: 0o600 });
    const { child } = await serve();
    expect(readFile().pid).toBe(child.pid);
  });
});
