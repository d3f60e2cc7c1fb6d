import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { sessionRef } from "@throughline/core";
import { openEncryption } from "@throughline/encryption";
import { beginErasure } from "@throughline/encryption/internal";
import { createSqliteStore } from "@throughline/store-sqlite";
import { afterAll, describe, expect, it } from "vitest";
import { runInTerminal } from "./terminal.ts";
import { objects, runHere, type Run, temporaryDirectory } from "./harness.ts";

const directory = temporaryDirectory();
afterAll(() => directory.remove());

const planted = "zebrafish";
const draft = `${JSON.stringify({ type: "message", message: { role: "user", content: `a ${planted} swims` } })}\n`;

interface Home {
  readonly path: string;
  run(args: readonly string[], options?: Parameters<typeof runHere>[2]): Promise<Run>;
}

function newHome(name: string): Home {
  const path = join(directory.path, name);
  mkdirSync(path);
  return { path, run: (args, options) => runHere(path, args, options) };
}

/** A home whose stores are encrypted. */
async function encryptedHome(name: string): Promise<Home & { readonly recoveryKey: string }> {
  const home = newHome(name);
  const { code, stdout } = await home.run(["encryption", "init", "--main-key", "file:main.key"]);
  expect(code).toBe(0);
  const settings = { encryption: { keyring: "keys.db", mainKey: "file:main.key" } };
  writeFileSync(join(home.path, "config.json"), JSON.stringify(settings));
  return { ...home, recoveryKey: stdout.trim() };
}

async function* inOne(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

function filesWith(folder: string, word: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => {
    const path = join(folder, name);
    return statSync(path).isFile() && readFileSync(path, "latin1").includes(word);
  });
}

describe("an encrypted store of the command line", () => {
  it("holds no text, and opens with the main key or the recovery key, and to a list without them", async () => {
    const { path, run, recoveryKey } = await encryptedHome("keys");
    expect(recoveryKey).toMatch(/^(?:[0-9A-Z]{5}-){10}[0-9A-Z]{5}$/);
    expect(filesWith(path, recoveryKey)).toEqual([]);
    expect(await run(["encryption", "init"])).toMatchObject({ code: 1, stdout: "" });
    await run(["append", "notes"], { stdin: draft });
    expect((await run(["chat", "--once", planted, "--key", "talk", "--model", "offline"])).code).toBe(0);
    expect(filesWith(path, planted)).toEqual([]);
    for (const args of [
      ["show", "notes"],
      ["search", planted],
      ["mcp", "--help"],
    ])
      expect((await run(args)).code, args[0]).toBe(0);
    expect((await run(["show", "notes"])).stdout).toContain(planted);
    expect((await run(["doctor"])).code).toBe(0);

    renameSync(join(path, "main.key"), join(path, "away.key"));
    const listed = objects((await run(["sessions", "--json"])).stdout).slice(0, -1);
    expect(listed).toMatchObject([
      { key: "talk", label: "encrypted" },
      { key: "notes", label: "encrypted", recordCount: 1 },
    ]);
    for (const args of [["show", "notes"], ["append", "notes"], ["doctor"], ["search", planted]]) {
      const refused = await run([...args, "--json"], { stdin: draft });
      expect(refused.code, args[0]).toBe(1);
      expect(objects(refused.stderr).at(-1), args[0]).toMatchObject({ code: "MAIN_KEY_WRONG" });
    }
    const environment = { THROUGHLINE_ENCRYPTION_MAIN_KEY: "env:RECOVERY", RECOVERY: recoveryKey };
    expect((await run(["show", "notes"], { environment })).stdout).toContain(planted);
  });

  it("is not mistaken for a plain one, and a plain one is copied into it", async () => {
    const { path, run } = await encryptedHome("copied");
    await run(["append", "notes", "--store", "sqlite:plain.db?encrypted=0"], { stdin: draft });
    const refused = await run(["sessions", "--store", "sqlite:plain.db", "--json"]);
    expect(objects(refused.stderr).at(-1)).toMatchObject({
      code: "CODEC_FAILED",
      message: "The store is not encrypted, and encryption.keyring is set.",
    });
    const copy = [
      "copy",
      "--all",
      "--all-agents",
      "--store",
      "sqlite:plain.db?encrypted=0",
      "--to-store",
      "sqlite:new.db",
    ];
    expect((await run(copy)).stdout).toContain("imported");
    expect((await run(copy)).stdout).toContain("unchanged");
    expect((await run(["show", "notes", "--store", "sqlite:new.db"])).stdout).toContain(planted);
    expect(filesWith(path, planted).filter((name) => !name.startsWith("plain.db"))).toEqual([]);
    const plain = await run(["show", "notes", "--store", "sqlite:new.db?encrypted=0", "--json"]);
    expect(objects(plain.stderr).at(-1)).toMatchObject({ code: "CODEC_FAILED", message: "The store is encrypted." });
  });
});

describe("delete --shred", () => {
  it("erases sessions in backups, too, and leaves a proof that `encryption check` accepts", async () => {
    const { path, run } = await encryptedHome("shredded");
    for (const key of ["agent:main:web:direct:ada", "agent:main:web:direct:bob"])
      await run(["append", key], { stdin: draft });
    await run(["backup", "backup.db"]);
    const asked = await run(["delete", "agent:main:web:direct:ada", "--shred", "--proof", "proof.json"]);
    expect(asked).toMatchObject({ code: 2 });
    const erased = await run([
      "delete",
      "--user",
      "agent:main:web:direct:ada",
      "--shred",
      "--proof",
      "proof.json",
      "--yes",
    ]);
    expect(erased).toMatchObject({ code: 0 });
    expect(erased.stderr).toContain("1 key destroyed");
    expect(await run(["encryption", "check", "proof.json"])).toMatchObject({ code: 0 });
    const proof = JSON.parse(readFileSync(join(path, "proof.json"), "utf8")) as object;
    writeFileSync(join(path, "other.json"), JSON.stringify({ ...proof, reason: "another" }));
    expect(await run(["encryption", "check", "other.json"])).toMatchObject({ code: 3, stdout: "not valid\n" });
    expect(objects((await run(["encryption", "--json"])).stdout)).toMatchObject([
      { kind: "encryption", keys: 1, destroyedKeys: 1, unfinishedErasures: 0 },
    ]);

    const backup = ["--store", "sqlite:backup.db"];
    const { stdout } = await run(["sessions", ...backup]);
    expect(stdout).toContain("erased on ");
    expect((await run(["show", "agent:main:web:direct:bob", ...backup])).stdout).toContain(planted);
    for (const args of [["doctor"], ["verify", "--full"]]) {
      const checked = await run([...args, ...backup, "--json"]);
      const found = objects(checked.stdout).filter(({ kind }) => kind === "finding");
      expect([checked.code, found.map(({ code }) => code)]).toEqual([
        0,
        args[0] === "doctor" ? ["SESSION_ERASED"] : [],
      ]);
    }
    const gone = await run(["show", "agent:main:web:direct:ada", ...backup, "--json"]);
    expect(objects(gone.stderr).at(-1)).toMatchObject({ details: { reason: "KEY_DESTROYED" } });

    await run(["fork", "agent:main:web:direct:bob", "--key", "agent:main:copy"]);
    const shared = await run(["delete", "agent:main:web:direct:bob", "--shred", "--yes", "--json"]);
    expect(objects(shared.stderr).at(-1)).toMatchObject({ code: "SESSION_SHARED" });
    const single = await run(["delete", "--keep-forks", "agent:main:web:direct:bob", "--shred", "--yes", "--json"]);
    expect(objects(single.stdout)).toMatchObject([{ kind: "removed", proof: { keyIds: [expect.any(String)] } }]);
    expect((await run(["show", "agent:main:copy"])).stdout).toContain(planted);
  });

  it("that was interrupted is completed by the next command that writes", async () => {
    const { path, run } = await encryptedHome("interrupted");
    await run(["append", "notes"], { stdin: draft });
    const key = Buffer.from(readFileSync(join(path, "main.key"), "utf8"), "base64");
    const codec = await openEncryption({ keyring: join(path, "keys.db"), mainKey: { key } });
    const store = createSqliteStore({ path: join(path, "sessions.db"), codec });
    await beginErasure(store, codec, [sessionRef({ key: "notes" })], { reason: "request 1" });
    await store.close();
    codec.close();
    expect((await run(["append", "other"], { stdin: draft })).code).toBe(0);
    expect(objects((await run(["sessions", "--json"])).stdout)).toMatchObject([{ key: "other" }, { kind: "end" }]);
    expect(objects((await run(["encryption", "--json"])).stdout)).toMatchObject([
      { keys: 1, destroyedKeys: 1, unfinishedErasures: 0 },
    ]);
  });

  it("is refused for a plain store, and destroys no key when the session stays", async () => {
    const plain = newHome("plain");
    await plain.run(["append", "notes"], { stdin: draft });
    expect(await plain.run(["delete", "notes", "--shred", "--yes"])).toMatchObject({ code: 2 });
    const { run } = await encryptedHome("kept");
    await run(["append", "notes"], { stdin: draft });
    expect(await run(["delete", "agent:main:main", "--shred", "--yes"])).toMatchObject({ code: 1 });
    expect(await run(["delete", "other", "--shred", "--yes"])).toMatchObject({ code: 1 });
    expect((await run(["show", "notes"])).stdout).toContain(planted);
  });
});

describe("the passphrase on a terminal", () => {
  it("is asked for twice by init, once by others, is never shown, and can be refused with Ctrl-C", async () => {
    const { path, run } = newHome("asked");
    const passphrase = "correct horse battery";
    const typed = async (args: readonly string[], ...answers: readonly (readonly [string, string])[]) => {
      await using terminal = runInTerminal(path, args);
      for (const [question, answer] of answers) {
        await terminal.waitFor(question);
        terminal.write(answer);
      }
      const code = await terminal.exitCode();
      expect(terminal.raw()).not.toContain("horse");
      return { code, text: terminal.text() };
    };
    const first = ["Passphrase of the keyring: ", `${passphrase}\r`] as const;
    const differs = await typed(["encryption", "init"], first, ["The same again: ", "another horse\r"]);
    expect([differs.code, differs.text]).toEqual([1, expect.stringContaining("The passphrases differ")]);
    expect(existsSync(join(path, "keys.db"))).toBe(false);
    const made = await typed(["encryption", "init"], first, ["The same again: ", `${passphrase}\r`]);
    expect([made.code, made.text]).toEqual([0, expect.stringMatching(/(?:[0-9A-Z]{5}-){10}[0-9A-Z]{5}/)]);
    writeFileSync(join(path, "config.json"), JSON.stringify({ encryption: { keyring: "keys.db" } }));
    const environment = { THROUGHLINE_ENCRYPTION_MAIN_KEY: "env:GIVEN", GIVEN: passphrase };
    expect((await run(["append", "notes"], { stdin: draft, environment })).code).toBe(0);
    expect((await typed(["show", "notes"], first)).text).toContain(planted);
    const wrong = await typed(["show", "notes"], [first[0], "wrong\r"]);
    expect([wrong.code, wrong.text]).toEqual([1, expect.stringContaining("does not open the keyring")]);
    const left = await typed(["show", "notes"], [first[0], "\u0003"]);
    expect(left.code).not.toBe(0);
    expect(left.text).not.toContain(planted);
    // What is typed before the question is neither the answer nor a message: the person answers again at the question.
    await using chat = runInTerminal(path, ["chat", "--model", "offline"]);
    chat.write(`${passphrase}\r`);
    await chat.waitFor(first[0]);
    expect(chat.raw()).not.toContain("> ");
    chat.write(first[1]);
    await chat.waitForPrompt();
    chat.write("/quit\r");
    await chat.waitFor("No messages, so nothing is saved.");
    expect(await chat.exitCode()).toBe(0);
    // A script is not asked.
    expect(objects((await run(["show", "notes", "--json"])).stderr).at(-1)).toMatchObject({ code: "MAIN_KEY_WRONG" });
  });
});

describe("encryption shred", () => {
  it("erases an agent with its files in backups, too, and no other agent", async () => {
    const { path, run } = await encryptedHome("agent");
    const key = Buffer.from(readFileSync(join(path, "main.key"), "utf8"), "base64");
    const codec = await openEncryption({ keyring: join(path, "keys.db"), mainKey: { key } });
    const store = createSqliteStore({ path: join(path, "sessions.db"), codec });
    for (const agent of ["ada", "bob"]) {
      for (const each of [`agent:${agent}:main`, `agent:${agent}:web:direct:x`])
        expect((await run(["append", each, "--agent", agent], { stdin: draft })).code).toBe(0);
      await store.files?.put({ namespace: "", agentId: agent }, inOne(Buffer.from(planted)));
    }
    await store.close();
    codec.close();
    await run(["backup", "backup.db"]);
    expect(await run(["encryption", "shred", "--yes"])).toMatchObject({ code: 2 });
    expect(await run(["encryption", "shred", "--agent", "ada"])).toMatchObject({ code: 2 });
    const erased = await run(["encryption", "shred", "--agent", "ada", "--proof", "ada.json", "--yes", "--json"]);
    expect(objects(erased.stdout)).toMatchObject([{ kind: "agentErasure", agentId: "ada", sessions: 2, files: 1 }]);
    expect(await run(["encryption", "check", "ada.json"])).toMatchObject({ code: 0 });
    for (const store of ["sqlite:sessions.db", "sqlite:backup.db"]) {
      expect((await run(["show", "agent:bob:main", "--agent", "bob", "--store", store])).stdout).toContain(planted);
      const gone = await run(["show", "agent:ada:main", "--agent", "ada", "--store", store]);
      expect([gone.code, gone.stdout.includes(planted)]).toEqual([1, false]);
    }
    // A key of each session, and one of the files.
    const { keyIds } = JSON.parse(readFileSync(join(path, "ada.json"), "utf8")) as { readonly keyIds: string[] };
    expect(keyIds.length).toBe(3);
  });
});

describe("encryption export-key", () => {
  it("prints a new recovery key, which alone opens the keyring beside the main key", async () => {
    const { path, run, recoveryKey: old } = await encryptedHome("exported");
    await run(["append", "notes"], { stdin: draft });
    expect(await run(["encryption", "export-key"])).toMatchObject({ code: 2, stdout: "" });
    const { code, stdout } = await run(["encryption", "export-key", "--yes"]);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^(?:[0-9A-Z]{5}-){10}[0-9A-Z]{5}\n$/)]);
    expect(filesWith(path, stdout.trim())).toEqual([]);
    const codes: unknown[] = [];
    for (const key of [stdout.trim(), old]) {
      const environment = { THROUGHLINE_ENCRYPTION_MAIN_KEY: "env:RECOVERY", RECOVERY: key };
      codes.push((await run(["show", "notes"], { environment })).code);
    }
    expect([...codes, (await run(["show", "notes"])).code]).toEqual([0, 1, 0]);
    // The main key in a file that other users can read is refused.
    chmodSync(join(path, "main.key"), 0o644);
    const refused = await run(["show", "notes", "--json"]);
    expect(objects(refused.stderr).at(-1)).toMatchObject({ code: "PATH_UNSAFE" });
  });
});

describe("encryption rotate", () => {
  it("replaces the main key and the recovery key, which still open older copies of the keyring", async () => {
    const { path, run, recoveryKey } = await encryptedHome("rotated");
    await run(["append", "notes"], { stdin: draft });
    copyFileSync(join(path, "keys.db"), join(path, "older.db"));
    const { code, stdout } = await run(["encryption", "rotate", "--new-main-key", "file:new.key", "--yes"]);
    expect(code).toBe(0);
    expect(stdout).not.toContain(recoveryKey);
    expect((await run(["show", "notes"])).code).toBe(1);
    const environment = { THROUGHLINE_ENCRYPTION_MAIN_KEY: "file:new.key" };
    expect((await run(["show", "notes"], { environment })).stdout).toContain(planted);
    const recovery = { THROUGHLINE_ENCRYPTION_MAIN_KEY: "env:RECOVERY", RECOVERY: recoveryKey };
    expect((await run(["show", "notes"], { environment: recovery })).code).toBe(1);
    const older = { ...recovery, THROUGHLINE_ENCRYPTION_KEYRING: "older.db" };
    expect((await run(["show", "notes"], { environment: older })).stdout).toContain(planted);
  });
});

describe.each(["jsonl:files", "sqlite:one.db"])("the encryption of %s", (store) => {
  it("is the same for the whole store: another setting reads and writes nothing", async () => {
    const { path, run } = await encryptedHome(store.replace(":", "-"));
    expect((await run(["append", "a", "--store", `${store}-coded`], { stdin: draft })).code).toBe(0);
    expect((await run(["append", "a", "--store", `${store}-plain?encrypted=0`], { stdin: draft })).code).toBe(0);
    for (const url of [`${store}-coded?encrypted=0`, `${store}-plain`])
      for (const args of [["sessions"], ["show", "a"], ["append", "b"], ["append", "a"], ["doctor"]]) {
        const refused = await run([...args, "--store", url, "--json"], { stdin: draft });
        expect([url, args[0], refused.code]).toEqual([url, args[0], 1]);
        expect(objects(refused.stderr).at(-1)).toMatchObject({ code: "CODEC_FAILED" });
      }
    const source = ["--all", "--all-agents", "--store", `${store}-plain?encrypted=0`];
    expect((await run(["copy", ...source, "--to-store", `${store}-copied`])).code).toBe(0);
    expect((await run(["show", "a", "--store", `${store}-copied`])).stdout).toContain(planted);
    expect(filesWith(path, planted).filter((name) => !name.includes("plain"))).toEqual([]);
  });
});
