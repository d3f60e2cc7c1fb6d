import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openSession, sessionRef, type SessionStore } from "@throughline/core";
import { withFileStore } from "@throughline/file-store";
import { createSqliteStore } from "@throughline/store-sqlite";
import { afterAll, beforeAll, beforeEach, describe, it, vi } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import type { Fault } from "./s3-server.ts";
import { type S3Process, startS3Process } from "./s3-process.ts";

vi.setConfig({ testTimeout: testSize({ short: 600_000, long: 3_600_000 }) });

const folder = mkdtempSync(join(tmpdir(), "throughline-purges-"));
let s3: S3Process;
beforeAll(async () => {
  s3 = await startS3Process();
  // Notes are two hours old for a process that finds them, so that it may remove them.
  await s3.ask({ aheadMs: -2 * 60 * 60 * 1000 });
});
beforeEach(() => s3.ask({ clear: true, faults: [] }));
afterAll(() => {
  s3.end();
  rmSync(folder, { recursive: true, force: true });
});

const scope = { namespace: "", agentId: "main" };
const recordId = "r1";
let number = 0;

interface Place {
  readonly path: string;
  readonly key: string;
  readonly fileId: string;
}

function open(path: string): SessionStore {
  return withFileStore(createSqliteStore({ path }), { files: s3.fileStore() });
}

/** A session with one file, and a second session with another that must outlive everything. */
async function fill(): Promise<Place> {
  number += 1;
  const place = { path: join(folder, `${number}.db`), key: `agent:main:${number}` };
  await using store = open(place.path);
  const add = async (key: string, text: string): Promise<string> => {
    const { id } = await store.files!.put(
      scope,
      (async function* () {
        yield Buffer.from(text);
      })(),
    );
    const ref = sessionRef({ key });
    await openSession(store, ref);
    await store.append(ref, [
      { type: "message", id: recordId, message: { role: "user", content: [{ type: "file", fileId: id }] } },
    ]);
    return id;
  };
  await add("agent:main:other", `kept ${number}`);
  return { ...place, fileId: await add(place.key, `purged ${number}`) };
}

async function start({ path, key }: Place, redacted = ""): Promise<ChildProcess> {
  const child = fork(join(import.meta.dirname, "purging-process.ts"), [path, s3.url, key, redacted], {
    execArgv: ["--conditions=@throughline/source"],
  });
  await once(child, "message");
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  if (child.exitCode === null && child.signalCode === null) await ended;
}

/** Waits until the storage has a request that begins in this way. */
async function requested(pattern: RegExp): Promise<void> {
  for (let round = 0; round < 3000; round += 1) {
    if ((await s3.ask()).log.some((line) => pattern.test(line))) return;
    await sleep(10);
  }
  assert.fail(`no request ${pattern}`);
}

/** What the next process finds: the records, the files of its list, and the objects after it. */
async function found({ path, key, fileId }: Place): Promise<{ isReferred: boolean; objects: readonly string[] }> {
  await using store = open(path);
  const isThere = (await store.load(sessionRef({ key }))) !== null;
  const records = isThere
    ? (await Array.fromAsync(store.read(sessionRef({ key })))).flatMap(({ records: each }) => each)
    : [];
  const isReferred = JSON.stringify(records).includes(fileId);
  const listed = (await Array.fromAsync(store.files!.list(scope))).flat();
  const own = listed.find(({ id }) => id === fileId);
  assert.deepEqual(own?.references, isReferred ? 1 : undefined);
  if (isReferred) {
    const bytes = Buffer.concat(await Array.fromAsync(store.files!.get(scope, fileId)));
    assert.match(bytes.toString(), /^purged/);
  }
  assert.equal(listed.length, isReferred ? 2 : 1, "the file of the other session stays");
  return { isReferred, objects: (await s3.ask()).objects.map(({ name }) => name) };
}

const moments: readonly (readonly [string, Fault, RegExp, boolean])[] = [
  [
    "before its note is written",
    { kind: "slow", method: "PUT", path: "deletions/", times: 1 },
    /^PUT .*deletions/,
    true,
  ],
  [
    "between its note and its commit",
    { kind: "unanswered", method: "PUT", path: "deletions/", times: 1 },
    /^PUT .*deletions/,
    true,
  ],
  ["between its commit and the DELETE", { kind: "slow", method: "DELETE", times: 1 }, /^DELETE .*files/, false],
  ["after the DELETE", { kind: "unanswered", method: "DELETE", path: "files/", times: 1 }, /^DELETE .*files/, false],
  [
    "before its note is removed",
    { kind: "slow", method: "DELETE", path: "deletions/", times: 1 },
    /^DELETE .*deletions/,
    false,
  ],
];

for (const [what, redacted] of [
  ["purge", ""],
  ["redaction", recordId],
] as const)
  describe(`a ${what} whose process is killed`, () => {
    for (const [moment, fault, request, isReferred] of moments)
      it(`${moment} is ${isReferred ? "not made, and the file stays" : "finished by the next list"}`, async () => {
        const place = await fill();
        await s3.ask({ faults: [{ ...fault }] });
        const child = await start(place, redacted);
        await requested(request);
        await kill(child);
        await s3.ask({ faults: [] });
        const state = await found(place);
        assert.equal(state.isReferred, isReferred);
        assert.equal(state.objects.length, isReferred ? 2 : 1, state.objects.join(" "));
        if (!isReferred) return;
        const again = await start(place, redacted);
        const [word] = (await once(again, "message")) as [string];
        assert.equal(word, "done");
        assert.deepEqual((await found(place)).objects.length, 1);
      });
  });

const rounds = testSize({ short: 10, long: 100 });

describe("a purge whose process is killed at a random moment", () => {
  it(`leaves either both or neither, ${rounds} times`, async () => {
    let [kept, gone] = [0, 0];
    for (let round = 0; round < rounds; round += 1) {
      const place = await fill();
      const child = await start(place);
      await sleep(Math.random() * 60);
      await kill(child);
      const { isReferred, objects } = await found(place);
      if (isReferred) kept += 1;
      else gone += 1;
      assert.equal(objects.length, isReferred ? 2 : 1, `round ${round}: ${objects.join(" ")}`);
      await s3.ask({ clear: true });
    }
    assert.equal(kept + gone, rounds);
  });
});
