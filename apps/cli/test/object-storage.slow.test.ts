import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openSession, sessionRef } from "@throughline/core";
import { withFileStore } from "@throughline/file-store";
import { createSqliteStore } from "@throughline/store-sqlite";
import { credentials, type S3Process, startS3Process } from "../../../packages/file-store/test/s3-process.ts";
import { objects, type Run, runHere, temporaryDirectory } from "./harness.ts";

let s3: S3Process;
beforeAll(async () => {
  s3 = await startS3Process();
});
beforeEach(() => s3.ask({ clear: true, faults: [] }));
afterAll(() => s3.end());

const scope = { namespace: "", agentId: "main" };
const key = "agent:main:files";
const pdf = "%PDF-1.7 heron";

interface Place extends Disposable {
  readonly home: string;
  readonly fileId: string;
  run(args: readonly string[], environment?: Readonly<Record<string, string>>): Promise<Run>;
}

/** A home whose store has its files in the bucket: one that a record names, and one that none does. */
async function place(): Promise<Place> {
  const directory = temporaryDirectory();
  const home = directory.path;
  const put = async (text: string): Promise<string> => {
    const bytes = async function* (): AsyncGenerator<Uint8Array> {
      yield Buffer.from(text);
    };
    return (await store.files!.put(scope, bytes())).id;
  };
  await using store = withFileStore(createSqliteStore({ path: join(home, "sessions.db") }), { files: s3.fileStore() });
  const [fileId] = [await put(pdf), await put("unused")];
  const ref = sessionRef({ key });
  await openSession(store, ref);
  const block = { type: "file", fileId, mediaType: "application/pdf", name: "a.pdf" };
  await store.append(ref, [{ type: "message", message: { role: "user", content: [block] } }]);
  const settings = {
    THROUGHLINE_FILES_BUCKET: "bucket",
    THROUGHLINE_FILES_ENDPOINT: s3.url,
    AWS_ACCESS_KEY_ID: credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
  };
  return {
    home,
    fileId,
    run: (args, environment = {}) => runHere(home, args, { environment: { ...settings, ...environment } }),
    [Symbol.dispose]: () => directory.remove(),
  };
}

const kept = async (): Promise<readonly string[]> =>
  (await s3.ask()).objects.map(({ text }) => Buffer.from(text, "base64").toString());

describe("a store whose files are in object storage, from the command line", () => {
  it("is checked, exported and copied with its files", async () => {
    using its = await place();
    const doctor = await its.run(["doctor", "--json"]);
    const codes = objects(doctor.stdout).flatMap(({ code }) => (typeof code === "string" ? [code] : []));
    expect(codes.filter((code) => code === "FILE_MISSING" || code === "FILE_UNUSED")).toEqual(["FILE_UNUSED"]);
    const exported = await its.run(["export", key, "--to", "claude-code"]);
    expect(exported.stdout).toContain(Buffer.from(pdf).toString("base64"));
    const copied = await its.run(["copy", key, "--to-store", "jsonl:other"]);
    expect(copied.code, copied.stderr).toBe(0);
    const folder = join(its.home, "other/agents/main/throughline/files");
    expect(readFileSync(join(folder, its.fileId), "utf8")).toBe(pdf);
  });

  it("loses the objects of unused files and of purged sessions", async () => {
    using its = await place();
    const pruned = await its.run(["prune", "--unused-files", "0s", "--yes"]);
    expect(pruned.code, pruned.stderr).toBe(0);
    expect(await kept()).toEqual([pdf]);
    const deleted = await its.run(["delete", key, "--purge", "--yes"]);
    expect(deleted.code, deleted.stderr).toBe(0);
    expect(await kept()).toEqual([]);
  });

  it("is not mixed with a store that --store names, unless files.store names it too", async () => {
    using its = await place();
    const prune = ["prune", "--unused-files", "0s", "--yes", "--store", "sqlite:another.db"];
    await createSqliteStore({ path: join(its.home, "another.db") }).close();
    await its.run(prune);
    expect(await kept()).toHaveLength(2);
    await its.run(prune, { THROUGHLINE_FILES_STORE: "sqlite:sessions.db" });
    expect(await kept()).toHaveLength(2);
    const own = ["prune", "--unused-files", "0s", "--yes", "--store", `sqlite:${join(its.home, "sessions.db")}`];
    await its.run(own, { THROUGHLINE_FILES_STORE: "sqlite:sessions.db" });
    expect(await kept()).toEqual([pdf]);
  });

  it("says which variable has no key, and lists sessions without one", async () => {
    using its = await place();
    const without = { AWS_SECRET_ACCESS_KEY: "" };
    expect((await its.run(["sessions"], without)).code).toBe(0);
    const failed = await its.run(["delete", key, "--purge", "--yes"], without);
    expect(failed.code).not.toBe(0);
    expect(failed.stderr).toContain("AWS_SECRET_ACCESS_KEY, which files.secretAccessKeyEnv names, is not");
    expect(await kept()).toHaveLength(2);
  });

  it("shows no secret in the settings", async () => {
    using its = await place();
    const { stdout } = await its.run(["config", "--json"], { THROUGHLINE_STORE: "postgres://ada:heron@localhost/x" });
    expect(stdout).toContain("files.store");
    expect(stdout).not.toContain("heron");
    expect(stdout).not.toContain(credentials.secretAccessKey);
  });
});
