import { createHash } from "node:crypto";
import {
  closeSync,
  copyFileSync,
  existsSync,
  openSync,
  readFileSync,
  readdirSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { basename, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { errorCodes } from "@throughline/core/internal";
import { sessionRef } from "@throughline/core";
import { commandTable } from "../src/command-table.ts";
import { withoutSelfAdvice } from "../src/error-report.ts";
import { openStore } from "../src/open-store.ts";
import { sqliteFileOf } from "@throughline/transfer/internal";
import { assistant, objects, runHere, seed, temporaryDirectory, user } from "./harness.ts";

let directory = temporaryDirectory();
let path = "";
beforeEach(async () => {
  directory = temporaryDirectory();
  path = join(directory.path, "sessions.db");
  await seed(directory.path, [
    { key: "agent:main:a", drafts: [user("one"), assistant("two"), user("three")] },
    { key: "agent:main:b", drafts: [user("four")] },
  ]);
});
afterEach(() => directory.remove());

interface Outcome {
  readonly code: number | null;
  readonly findings: Record<string, unknown>[];
  readonly notes: string;
  readonly errors: Record<string, unknown>[];
}

async function run(...args: readonly string[]): Promise<Outcome> {
  const { code, stdout, stderr } = await runHere(directory.path, [...args, "--json"]);
  const talk = stderr === "" ? [] : objects(stderr);
  return {
    code,
    findings: (stdout === "" ? [] : objects(stdout)).filter(({ kind }) => kind === "finding"),
    notes: talk.flatMap(({ kind, message }) => (kind === "note" ? [String(message)] : [])).join("\n"),
    errors: talk.filter(({ kind }) => kind === "error"),
  };
}

/** Changes what the store holds behind its back. */
function spoil(sql: string, file = path): void {
  const database = new DatabaseSync(file);
  database.exec(sql);
  database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  database.close();
}

/** The pages of a table, all of them overwritten with zeros. */
function zeroTable(name: string): void {
  const database = new DatabaseSync(path);
  database.exec("PRAGMA journal_mode = DELETE");
  const row = database.prepare("SELECT rootpage FROM sqlite_schema WHERE name = ?").get(name) as { rootpage: number };
  database.close();
  const handle = openSync(path, "r+");
  writeSync(handle, Buffer.alloc(8192), 0, 8192, (row.rootpage - 1) * 8192);
  closeSync(handle);
}

const hash = (file: string): string => createHash("sha256").update(readFileSync(file)).digest("hex");
const names = (): string[] =>
  readdirSync(directory.path)
    .filter((name) => !/-(wal|shm)$/.test(name))
    .toSorted();

describe("doctor and a damaged database", () => {
  it("names the damage and what can be done about it, and reads the sessions that are whole", async () => {
    spoil("UPDATE store_records SET text = '{oops' WHERE session = 1 AND seq = 2");
    const { code, findings, notes } = await run("doctor");
    expect(code).toBe(3);
    expect(findings).toMatchObject([
      { code: "STORE_DAMAGED", severity: "error", key: "agent:main:a", repaired: false },
    ]);
    expect(String(findings[0]?.["remedy"])).not.toContain("permissions");
    expect(notes).toContain("`throughline doctor --repair` writes what can be read of it to a new file.");
    expect(notes).toContain(`\`throughline restore-backup FILE --yes --store sqlite:${path}\``);
  });

  it.each(["store_sessions", "store_records"])(
    "ends with findings, not with an error, when %s is lost",
    async (table) => {
      zeroTable(table);
      for (const args of [["doctor"], ["doctor", path]]) {
        const { code, findings, errors } = await run(...args);
        expect([code, errors]).toEqual([3, []]);
        expect(findings.length).toBeGreaterThan(0);
        expect(new Set(findings.map((finding) => finding["code"]))).toEqual(new Set(["STORE_DAMAGED"]));
      }
    },
  );

  it.each([
    ["the store", () => ["doctor", "--repair"]],
    ["a file", () => ["doctor", path, "--repair"]],
  ])("--repair of %s writes a store beside it that can take its place, and leaves it as it is", async (_what, args) => {
    spoil("UPDATE store_records SET text = '{oops' WHERE session = 1 AND seq = 2");
    const before = hash(path);
    const { code, findings, notes } = await run(...args());
    expect(code).toBe(3);
    expect(hash(path)).toBe(before);
    const copy = names().find((name) => name.includes(".repaired-")) ?? "";
    const full = join(directory.path, copy);
    expect(names()).toEqual([basename(path), copy].toSorted());
    expect(statSync(full).mode & 0o777).toBe(0o600);
    expect(findings.filter(({ repaired }) => repaired === true)).toMatchObject([{ code: "STORE_DAMAGED", path: full }]);
    // A record that is gone is not repaired by the note that says so.
    expect(findings).toContainEqual(expect.objectContaining({ code: "RECORD_MISSING", repaired: false }));
    expect(notes).toContain(`Wrote ${full}: 2 sessions, 3 records, and notes in the place of 1 record.`);
    const command = `throughline restore-backup ${full} --yes --store sqlite:${path}`;
    expect(notes).toContain(`\`${command}\` puts it in the place of the store`);
    expect((await run(...command.split(" ").slice(1))).code).toBe(0);
    expect((await run("verify", "--full")).findings).toEqual([]);
    const shown = await runHere(directory.path, ["show", "agent:main:a", "--quiet"]);
    expect(shown.stdout).toContain("three");
  });

  it("--repair of a whole store writes nothing", async () => {
    expect(await run("doctor", "--repair")).toMatchObject({ code: 0, findings: [], notes: "" });
    expect(names()).toEqual(["sessions.db"]);
  });

  it("--repair calls nothing repaired when no record could be read", async () => {
    spoil("UPDATE store_records SET text = '{oops'");
    const { code, findings, notes, errors } = await run("doctor", "--repair");
    expect(code).toBe(1);
    expect(errors).toMatchObject([
      { code: "STORE_CORRUPT", message: expect.stringContaining("Nothing could be recovered") },
    ]);
    expect(findings.filter(({ repaired }) => repaired === true)).toEqual([]);
    expect(findings.some(({ message }) => /No record of .* could be read/.test(String(message)))).toBe(true);
    expect(notes).not.toContain("Wrote");
    expect(names()).toEqual(["sessions.db"]);
  });

  it.each([
    ["cut by 5 %", (bytes: Buffer) => bytes.subarray(0, Math.floor(bytes.length * 0.95))],
    ["without its first page", (bytes: Buffer) => Buffer.concat([Buffer.alloc(8192, 7), bytes.subarray(8192)])],
  ])(
    "--repair of a file SQLite refuses, %s, says how many records are in the copy it has written",
    async (_how, change) => {
      const store = await openStore(`sqlite:${path}`, { workingDirectory: directory.path, create: false });
      const ref = sessionRef({ key: "agent:main:long" });
      await store.save(ref, { sessionId: "long" }, { ifRevision: null });
      for (let from = 0; from < 1020; from += 20)
        await store.append(
          ref,
          Array.from({ length: 20 }, (_, index) => user(`${from + index} ${"x".repeat(300)}`)),
        );
      await store.close();
      writeFileSync(path, change(readFileSync(path)));
      const before = hash(path);
      for (const args of [
        ["doctor", "--repair"],
        ["doctor", path, "--repair"],
      ]) {
        const { code, findings, notes, errors } = await run(...args);
        expect([code, errors]).toEqual([3, []]);
        expect(hash(path)).toBe(before);
        const copied = findings.find(({ repaired }) => repaired === true) ?? expect.fail();
        const [, saved = ""] = /^([\d,]+) of 1,024 records recovered into /.exec(String(copied["message"])) ?? [];
        const records = Number(saved.replace(",", ""));
        expect(records).toBeGreaterThan(900);
        expect(existsSync(String(copied["path"]))).toBe(true);
        expect(notes).toContain(`Wrote ${String(copied["path"])}: 3 sessions, ${records} records`);
        const url = `sqlite:${String(copied["path"])}`;
        const asked = ["show", "agent:main:long", "--all-branches", "--role", "user", "--json", "--store", url];
        const shown = await runHere(directory.path, asked);
        expect(objects(shown.stdout).filter(({ kind }) => kind === "record").length).toBe(records - 4);
      }
    },
  );

  it("leaves a damaged file where it is though a backup lies beside it", async () => {
    copyFileSync(path, `${path}.old.backup`);
    writeFileSync(path, Buffer.concat([readFileSync(path).subarray(0, 8192), Buffer.alloc(8192 * 20)]));
    const before = hash(path);
    const { code, findings } = await run("doctor", path, "--repair");
    expect(code).toBe(1);
    expect(findings.map((finding) => finding["code"])).not.toContain("STORE_RESTORED");
    expect(hash(path)).toBe(before);
  });
});

describe("doctor and a database given as PATH", () => {
  const seen = async (file: string): Promise<Outcome> => {
    const outcome = await run("doctor", file, "--repair");
    expect(outcome.findings.map((finding) => finding["code"])).not.toContain("LINE_MALFORMED");
    expect(readdirSync(directory.path).filter((name) => name.endsWith(".repaired.jsonl"))).toEqual([]);
    return outcome;
  };

  it("looks into a store of ours, whatever its name", async () => {
    const other = join(directory.path, "kept.bin");
    copyFileSync(path, other);
    expect(await seen(other)).toMatchObject({ code: 0, findings: [], errors: [] });
    spoil("UPDATE store_records SET text = '{oops' WHERE session = 1 AND seq = 2", other);
    expect((await seen(other)).code).toBe(3);
  });

  it("says of a database of another program what reads it, and of a log whose it is", async () => {
    const foreign = join(directory.path, "openclaw-agent.sqlite");
    spoil("CREATE TABLE transcript_events (session_id TEXT)", foreign);
    const { code, errors } = await seen(foreign);
    expect(code).toBe(1);
    expect(errors).toMatchObject([{ code: "INPUT_INVALID", message: expect.stringContaining("another program") }]);
    expect(errors[0]?.["remedy"]).toContain(`throughline import ${foreign} --dry-run`);
    const log = join(directory.path, "sessions.db-wal");
    writeFileSync(log, Buffer.from("377f0682002de21800002000", "hex"));
    expect((await seen(log)).errors).toMatchObject([{ code: "INPUT_INVALID", remedy: expect.stringContaining(path) }]);
  });

  it("says that a first page is lost, and takes a transcript for one whatever its name", async () => {
    writeFileSync(path, Buffer.concat([Buffer.alloc(8192, 7), readFileSync(path).subarray(8192)]));
    const { code, findings, notes } = await run("doctor", path);
    expect(code).toBe(3);
    expect(findings).toMatchObject([{ code: "STORE_DAMAGED", repaired: false }]);
    expect(notes).toContain(`\`throughline doctor --repair ${path}\` writes what can be read of it`);
    expect((await seen(path)).notes).toContain("Wrote");
    const odd = join(directory.path, "talk.db");
    writeFileSync(odd, '{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":""}\n');
    expect([sqliteFileOf(odd), sqliteFileOf(path), sqliteFileOf(join(directory.path, "none.db"))]).toEqual([
      null,
      "headless",
      null,
    ]);
    expect((await run("doctor", odd)).code).toBe(0);
  });

  it("calls a file of which nothing can be read not repaired, and writes no empty copy", async () => {
    const junk = join(directory.path, "junk.jsonl");
    writeFileSync(junk, Buffer.alloc(3000, 0x9f));
    const { code, findings, notes } = await seen(junk);
    expect(code).toBe(3);
    expect(findings.length).toBeGreaterThan(0);
    expect(findings.filter(({ repaired }) => repaired === true)).toEqual([]);
    expect(notes).toContain("no record of it can be read");
  });
});

describe("a remedy", () => {
  it("never names the command that gives it", async () => {
    writeFileSync(join(directory.path, "config.json"), '{"stoer":"memory:"}');
    const { stderr } = await runHere(directory.path, ["config"]);
    expect(stderr).toContain("Correct it where the message says, or take it away.");
    expect(stderr).not.toContain("throughline config");
    for (const { name } of commandTable)
      for (const { remedy } of Object.values(errorCodes))
        expect(withoutSelfAdvice(remedy, name)).not.toContain(`\`throughline ${name}\``);
    expect(withoutSelfAdvice(errorCodes.STORE_CORRUPT.remedy, "show")).toBe(errorCodes.STORE_CORRUPT.remedy);
    expect(withoutSelfAdvice(errorCodes.STORE_CORRUPT.remedy, "doctor")).toBe("Nothing was overwritten.");
  });
});
