import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import { objects, start, temporaryDirectory, type Run, type RunOptions } from "./harness.ts";

/** What makes a backtracking expression take hours, and code that looks back over all of the text take minutes. */
const pieces: Readonly<Record<string, string>> = {
  addresses: "a@",
  objects: "{",
  lists: "[[[[",
  escapes: '"\\\\',
  spaces: " ",
  returns: "\r",
  digits: "12345",
  thousands: "1,000.",
  quotes: "'a ",
  limits: "prompt exceeds maximum context tokens ",
  nested: '{"message":"',
  names: "aA_a",
  paths: "a/b.",
};
/** A process that has not ended by then is taken to be frozen. The work takes about a second. */
const frozenMs = 90_000;

let directory = temporaryDirectory();
beforeEach(() => void (directory = temporaryDirectory()));
afterEach(() => directory.remove());

async function run(args: readonly string[], options: RunOptions = {}): Promise<Run> {
  const child = start(directory.path, args, options);
  const timer = setTimeout(() => child.kill("SIGKILL"), frozenMs);
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (chunk) => (stdout += chunk));
  child.stderr.on("data", (chunk) => (stderr += chunk));
  child.stdin.on("error", () => {});
  child.stdin.end(options.stdin ?? "");
  const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
  clearTimeout(timer);
  return { code, stdout, stderr };
}

function hostile(piece: string, length: number): string {
  return piece.repeat(Math.ceil(length / piece.length));
}

describe("texts made to freeze a process", () => {
  it.each(Object.entries(pieces))("%s are diagnosed", { tags: ["slow"] }, async (_, piece) => {
    const errors = [
      hostile(piece, testSize({ short: 65_536, long: 1_048_576 })),
      JSON.stringify({ status: 400, message: hostile(piece, 300_000) }),
    ];
    for (const stdin of errors) {
      const { code, stdout } = await run(["diagnose", "--json", "--provider", "anthropic"], { stdin });
      // White space alone is no error to diagnose.
      if (stdin.trim() === "") expect(code).toBe(2);
      else expect([code, objects(stdout)[0]?.["kind"]]).toEqual([0, "diagnosis"]);
    }
  });

  it("end a turn when a provider answers with them", { tags: ["slow"] }, async () => {
    const texts = ["addresses", "escapes", "spaces", "limits", "nested"].map((name) => pieces[name] ?? "");
    let asked = 0;
    const server = createServer((request, response) => {
      request.resume();
      response.writeHead(400, { "content-type": "text/plain" });
      response.end(hostile(texts[asked++ % texts.length] as string, 1_048_576));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    try {
      const environment = { ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: url };
      const args = [
        "chat",
        "--key",
        "agent:main:cli:direct:work",
        "--model",
        "anthropic/claude-opus-5",
        "--once",
        "Hi",
      ];
      for (const piece of texts) {
        const { code, stderr } = await run(args, { environment });
        expect(code, `${piece}: ${stderr.slice(0, 300)}`).toBe(1);
      }
      expect(asked).toBeGreaterThanOrEqual(texts.length);
    } finally {
      server.close();
    }
  });

  it("are imported, shown, searched, checked and exported", { tags: ["slow"] }, async () => {
    mkdirSync(join(directory.path, "in"));
    const lines = Object.values(pieces).flatMap((piece, at) => [
      { type: "message", id: `u${at}`, message: { role: "user", content: hostile(piece, 100_000) } },
      { type: "message", id: `a${at}`, message: { role: "assistant", content: [{ type: "text", text: piece }] } },
    ]);
    const header = { type: "session", version: 3, id: "hostile", timestamp: "2026-01-01T00:00:00.000Z", cwd: "/" };
    const file = join(directory.path, "in/hostile.jsonl");
    // Lines that are no JSON are of the same kinds.
    const broken = Object.values(pieces).map((piece) => hostile(piece, 100_000).replaceAll("\r", ""));
    writeFileSync(file, [...[header, ...lines].map((line) => JSON.stringify(line)), ...broken, ""].join("\n"));

    const imported = await run(["import", file, "--json"]);
    // The broken lines are findings.
    expect(imported.code, imported.stderr.slice(0, 500)).toBe(3);
    const commands = [
      ["show", "hostile", "--json"],
      ["show", "hostile"],
      ["context", "hostile", "--json"],
      ["search", "aA_a", "--json"],
      ["search", hostile('a"* ', 4000), "--json"],
      ["doctor", "--json"],
      ["verify", "--json"],
      ["export", "hostile", "--to", join(directory.path, "out")],
    ];
    for (const args of commands) {
      const { code, stderr } = await run(args);
      expect(code, `${args.join(" ").slice(0, 80)}: ${stderr.slice(0, 300)}`).not.toBeNull();
    }
  });
});
