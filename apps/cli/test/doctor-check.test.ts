import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ThroughlineError } from "@throughline/core";
import type { Finding, SessionStore } from "@throughline/core";
import { createFinding } from "@throughline/core/internal";
import { checkFiles } from "../src/doctor/check-files.ts";
import { checkStore } from "../src/doctor/check-store.ts";
import { verifyStore } from "../src/doctor/verify-store.ts";
import type { CheckedFile } from "../src/doctor/check-files.ts";
import { createMemoryStore } from "@throughline/store-memory";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "inspect-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const { signal } = new AbortController();
const header = '{"type":"session","version":3,"id":"s1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}\n';
const message =
  '{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"hi"}}\n';

async function check(copies: Map<string, string> | null): Promise<readonly CheckedFile[]> {
  const writeCopy = async (path: string, bytes: AsyncIterable<Uint8Array>): Promise<void> => {
    if (copies?.has(path) === true) throw new ThroughlineError("EXPORT_EXISTS", "taken");
    copies?.set(path, Buffer.concat(await Array.fromAsync(bytes)).toString());
  };
  const options = { sessionIdOf: () => Promise.resolve(null), signal, ...(copies === null ? {} : { writeCopy }) };
  return Array.fromAsync(checkFiles(folder, options));
}

describe("checkFiles", () => {
  it("writes a copy of a damaged transcript only if asked, and never over another one", async () => {
    const path = join(folder, "s1.jsonl");
    writeFileSync(path, `${header}{oops\n${message}`);
    writeFileSync(join(folder, "s2.jsonl"), header.replace("s1", "s2") + message);
    expect((await check(null)).map(({ repair }) => repair)).toEqual([null, null]);
    const copies = new Map<string, string>();
    const [damaged, good] = await check(copies);
    const target = `${path}.repaired.jsonl`;
    expect(damaged).toMatchObject({ path, repair: { state: "written", target }, findings: [{ repaired: true }] });
    expect([good?.repair, [...copies]]).toEqual([null, [[target, header + message]]]);
    expect((await check(copies))[0]).toMatchObject({ repair: { state: "exists" }, findings: [{ repaired: false }] });
  });

  it("writes no copy of a file without a readable record", async () => {
    writeFileSync(join(folder, "junk.jsonl"), Buffer.alloc(3000, 0x9f));
    const copies = new Map<string, string>();
    expect((await check(copies)).map(({ repair }) => repair)).toEqual([{ state: "unreadable" }]);
    expect(copies.size).toBe(0);
  });
});

const asked = { role: "user", content: [{ type: "text", text: "x".repeat(300_000) }] };
const foreign: readonly (readonly [program: string, name: string, text: string])[] = [
  [
    "Gemini CLI",
    "a.jsonl",
    `${JSON.stringify({ sessionId: "g", projectHash: "a", startTime: "", messages: [{ id: "1", type: "user", content: "Hi" }] }, null, 2)}`,
  ],
  [
    "Codex",
    "b.jsonl",
    `${JSON.stringify({ timestamp: "", type: "session_meta", payload: { id: "c", instructions: "x".repeat(300_000) } })}\n`,
  ],
  [
    "Anthropic Messages",
    "c.jsonl",
    `{"model":"claude-1","messages":[\n${JSON.stringify(asked)},\n{"role":"assistant","content":"Yes"}]}`,
  ],
  ["OpenAI Chat Completions", "d.jsonl", `{"role":"user","content":"Hi"}\n{"role":"assistant","content":"Yes"}\n`],
];

describe("a file of another program", () => {
  it.each(foreign)("is named by its program, %s, and no copy is made of it", async (program, name, text) => {
    writeFileSync(join(folder, name), text);
    const copies = new Map<string, string>();
    const [file] = await check(copies);
    expect(file?.findings.map(({ code, message: said }) => [code, said])).toEqual([
      ["TRANSCRIPT_FOREIGN", `The file is a transcript of ${program}.`],
    ]);
    expect([file?.repair, copies.size]).toEqual([null, 0]);
  });
});

describe("a store in a folder", () => {
  it("is checked and verified for files that no store can read", async () => {
    const sessions = join(folder, "agents/main/sessions");
    mkdirSync(sessions, { recursive: true });
    mkdirSync(join(folder, "agents/empty"));
    const path = join(sessions, "s1.jsonl");
    writeFileSync(path, (header + message).replaceAll("\n", "\r"));
    const open = (): Promise<ReturnType<typeof createMemoryStore>> => Promise.resolve(createMemoryStore());
    const found: Finding[] = [];
    const notes: string[] = [];
    const listener = {
      onFindings: async (findings: readonly Finding[]): Promise<void> => void found.push(...findings),
      onCopy: () => notes.push("copy"),
      onNoRepair: (name: string) => notes.push(`no repair of ${name}`),
      onNoCheck: (name: string) => notes.push(`no check of ${name}`),
    };
    const place = { open, folder, query: {}, signal };
    const outcome = await checkStore({ ...place, openCopy: open, path: null, isRepair: true }, listener);
    expect(outcome).toEqual({ isDamaged: true, isRepairable: true, isRepairFailed: false });
    await verifyStore({ ...place, isFull: false }, listener);
    expect(found).toMatchObject([
      { code: "TRANSCRIPT_FOREIGN", path },
      { code: "TRANSCRIPT_FOREIGN", path },
    ]);
    expect(notes).toEqual(["no repair of memory", "no check of memory"]);
  });
});

describe("a repair of a store in one file", () => {
  it("has failed also when other findings follow the damage that it left", async () => {
    const path = join(folder, "store.db");
    async function* repair(): AsyncGenerator<Finding> {
      yield createFinding("STORE_DAMAGED", "Nothing was written.", { path });
      yield createFinding("RECORD_MISSING", "A record is missing.", { path });
    }
    async function* verify(): AsyncGenerator<Finding> {}
    const open = (): Promise<SessionStore> =>
      Promise.resolve(Object.assign(createMemoryStore(), { maintenance: { verify, repair } }));
    const listener = { onFindings: () => Promise.resolve(), onCopy: () => {}, onNoRepair: () => {} };
    const place = { open, openCopy: open, path, folder: null, query: {}, signal };
    const outcome = await checkStore({ ...place, isRepair: true }, listener);
    expect(outcome).toEqual({ isDamaged: true, isRepairable: true, isRepairFailed: true });
  });
});
