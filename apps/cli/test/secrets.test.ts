import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { objects, runHere, temporaryDirectory } from "./harness.ts";

const directory = temporaryDirectory();
afterAll(() => directory.remove());

/** No scanner of this repository should take the texts of this file for secrets. */
const github = `ghp_${"a1B2".repeat(9)}`;
const slack = ["xoxb", "123456789012", "123456789012", "aB3d".repeat(6)].join("-");
const privateKey = [
  "-----BEGIN RSA PRIVATE KEY-----",
  ...Array.from({ length: 4 }, () => "MIIEow".padEnd(64, "aB3x")),
  "-----END RSA PRIVATE KEY-----",
].join("\n");
const planted = [github, slack, privateKey];
/** A line of a private key is as good as the whole. */
const traces = [github, slack, "MIIEowaB3xaB3x"];

function drafts(secret: string): readonly object[] {
  const call = { type: "toolCall", id: "c1", name: "bash", arguments: { command: `curl -H ${secret}`, [secret]: 1 } };
  const usage = { input: 1, output: 1 };
  return [
    { type: "message", message: { role: "user", content: `my token: ${secret} (keep this)` } },
    { type: "message", message: { role: "user", content: [{ type: "text", text: `secretlint-disable\n${secret}` }] } },
    { type: "message", message: { role: "assistant", content: [{ type: "thinking", thinking: secret }, call], usage } },
    { type: "message", message: { role: "toolResult", toolCallId: "c1", content: [{ type: "text", text: secret }] } },
    { type: "message", message: { role: "bashExecution", command: secret, output: JSON.stringify({ out: secret }) } },
    { type: "custom", customType: "x", data: { deep: [[{ value: secret }]] } },
    { type: "custom", customType: "throughline.exchange", data: { frame: [{ literal: secret }], errorBody: secret } },
    { type: "custom", customType: "throughline.prompt", data: { system: secret } },
    { type: "branch_summary", fromId: "none", summary: `said ${secret}` },
    { type: "mystery", anything: secret },
  ];
}

function filesBelow(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile());
}

function filesWith(folder: string, words: readonly string[]): readonly string[] {
  return filesBelow(folder).filter((path) => words.some((word) => readFileSync(path, "latin1").includes(word)));
}

function stdinOf(lines: readonly object[]): string {
  return lines.map((line) => `${JSON.stringify(line)}\n`).join("");
}

describe.each(["jsonl", "sqlite"])("secrets in a %s store", { tags: ["slow"] }, (scheme) => {
  it("are found in every field, printed masked, and redacted inside of their records", async () => {
    const home = join(directory.path, scheme);
    mkdirSync(home);
    const cli = (args: readonly string[], stdin = ""): ReturnType<typeof runHere> =>
      runHere(home, [...args, "--store", `${scheme}:${home}/store`], { stdin });
    for (const secret of planted) {
      expect((await cli(["append", "notes"], stdinOf(drafts(secret)))).code).toBe(0);
      await cli(["rename", "notes", "--label", `for ${secret}`]);
    }
    await cli(["fork", "notes", "--key", "agent:main:cli:direct:forked"]);
    await cli(["append", "clean"], stdinOf([{ type: "message", message: { role: "user", content: "harbour" } }]));
    await cli(["search", "token"]);
    const lines = (await cli(["show", "notes", "--raw", "--all-branches"])).stdout.split("\n");
    const found = await cli(["secrets", "notes", "--json"]);
    expect(found.code).toBe(3);
    const rows = objects(found.stdout).filter(({ kind }) => kind === "secret");
    for (const [index, rule] of ["github", "slack", "privatekey"].entries()) {
      const seqs = rows.filter((row) => row["rule"] === rule && row["seq"] !== null).map(({ seq }) => seq);
      expect([...new Set(seqs)]).toEqual(drafts("").map((_, at) => index * drafts("").length + at + 1));
    }
    expect(rows.some((row) => row["field"] === "label")).toBe(true);
    for (const trace of traces) expect(found.stdout).not.toContain(trace);
    const refused = await cli(["secrets", "notes", "--redact"]);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("Permanently erase")]);
    const redacted = await cli(["secrets", "--redact", "--yes"]);
    expect([redacted.code, redacted.stderr]).toEqual([0, ""]);
    expect(filesWith(home, traces)).toEqual([]);
    expect([await cli(["secrets"])]).toMatchObject([{ code: 0, stdout: "0 secrets\n" }]);
    const after = (await cli(["show", "notes", "--raw", "--all-branches"])).stdout.split("\n");
    const kept = planted.reduce(
      (text, secret) => text.replaceAll(JSON.stringify(secret).slice(1, -1), "[redacted]"),
      lines.slice(0, 10).join("\n"),
    );
    expect(after.slice(0, 10).join("\n")).toBe(kept);
    expect((await cli(["search", "keep", "--session", "notes"])).stdout).toContain("[redacted]");
    expect((await cli(["verify"])).code).toBe(0);
  });
});

describe("secrets", () => {
  it("names the file of the other program, which stays as it is, and stays redacted when the file grows", async () => {
    const home = join(directory.path, "imported");
    const folder = join(home, ".claude/projects/-app");
    mkdirSync(folder, { recursive: true });
    const sessionId = "7f2abd2d-7cfc-4447-9ddd-3ca8d14e02e9";
    const file = join(folder, `${sessionId}.jsonl`);
    const line = (uuid: string, parentUuid: string | null, content: string): string =>
      `${JSON.stringify({ type: "user", sessionId, uuid, parentUuid, cwd: "/app", gitBranch: uuid === "u1" ? github : "main", timestamp: "2026-01-01T00:00:00.000Z", message: { role: "user", content } })}\n`;
    const first = line("u1", null, `use ${github} please`);
    writeFileSync(file, first);
    const run = await runHere(home, ["import", file, "--key", "agent:main:import:direct:x", "--json"]);
    expect(run.code).toBe(0);
    const redacted = await runHere(home, ["secrets", "--redact", "--yes"]);
    expect([redacted.code, redacted.stderr]).toEqual([0, expect.stringContaining(`is not changed: ${file}`)]);
    expect(readFileSync(file, "utf8")).toBe(first);
    expect(filesWith(home, [github])).toEqual([file]);
    writeFileSync(file, first + line("u2", "u1", "and on"));
    const grown = await runHere(home, ["import", file, "--key", "agent:main:import:direct:x", "--json"]);
    expect(objects(grown.stdout)[0]).toMatchObject({ sources: [{ state: "grown", records: 1 }] });
    expect(filesWith(home, [github])).toEqual([file]);
    const exported = await runHere(home, ["export", "agent:main:import:direct:x", "--to", "claude-code"]);
    expect(exported.stdout).toBe((first + line("u2", "u1", "and on")).replaceAll(github, "[redacted]"));
  });
});
