import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { hasErrorCode } from "@throughline/core";
import { killProcess } from "@throughline/store-conformance";
import { createKeyring, type Encryption, openEncryption } from "@throughline/encryption";
import { describe, expect, it } from "vitest";
import { bundledWorker } from "../../../tools/bundle-worker.ts";
import { testSize } from "../../../tools/test-size.ts";
import { keyringPath, mainKey, opened } from "./temporary-keyring.ts";

const useUntilKilled = bundledWorker(new URL("./use-until-killed.ts", import.meta.url));
const changeKeyring = bundledWorker(new URL("./change-keyring.ts", import.meta.url));

function textOf(codec: Encryption, sessionId: string, id: string, coded: string): string {
  const context = { namespace: "", agentId: "main", sessionId, id, part: "record" } as const;
  return Buffer.from(codec.decode(Buffer.from(coded, "base64"), context)).toString();
}

describe("kill -9 between a key, its payload and the acknowledgment", () => {
  it(
    "leaves no acknowledged payload without its key, two processes on the same sessions",
    { timeout: 3_600_000 },
    async () => {
      const keyring = keyringPath();
      await createKeyring({ keyring, mainKey });
      const acknowledged: string[] = [];
      for (let round = 0; round < testSize({ short: 4, long: 500 }); round++) {
        const killed = await Promise.all(
          ["first", "second"].map(() =>
            killProcess({
              scriptPath: useUntilKilled,
              args: [keyring, join(dirname(keyring), "payloads"), `round-${round}`],
              maxDelayMs: 60,
            }),
          ),
        );
        for (const { wasKilled, stderr, acknowledged: lines } of killed) {
          expect({ wasKilled, stderr }).toEqual({ wasKilled: true, stderr: "" });
          acknowledged.push(...lines);
        }
      }
      const codec = await opened(keyring);
      for (const line of acknowledged) {
        const [sessionId = "", id = "", coded = ""] = line.split(" ");
        expect(textOf(codec, sessionId, id, coded)).toBe(`text of ${sessionId}`);
      }
      expect(acknowledged.length).toBeGreaterThanOrEqual(testSize({ short: 8, long: 1000 }));
    },
  );
});

/** The calls of the system by which SQLite and Node change files. */
const calls = ["pwrite64", "fsync", "unlink", "link"] as const;
const hasStrace = spawnSync("strace", ["-V"]).status === 0;

/** Runs the program with a kill before its call of this number. Returns what it acknowledged, and whether it was killed. */
function killedAt(
  call: string,
  number: number,
  keyring: string,
): { readonly said: string[]; readonly isKilled: boolean } {
  const inject = `inject=${call}:signal=KILL:when=${number}`;
  const { stdout, signal, status } = spawnSync(
    "strace",
    ["-f", "-o", "/dev/null", "-e", `trace=${call}`, "-e", inject, process.execPath, changeKeyring, keyring],
    { encoding: "utf8" },
  );
  return { said: stdout.split("\n").slice(0, -1), isKilled: signal === "SIGKILL" || status === 137 };
}

async function openedByEither(keyring: string, wasRotated: boolean): Promise<Encryption> {
  const second = { key: Buffer.alloc(32, 8) };
  try {
    return await openEncryption({ keyring, mainKey: wasRotated ? second : mainKey });
  } catch (error) {
    if (wasRotated || !hasErrorCode(error, "MAIN_KEY_WRONG")) throw error;
    return openEncryption({ keyring, mainKey: second });
  }
}

async function assertWhole(keyring: string, said: readonly string[]): Promise<void> {
  if (!existsSync(keyring)) return expect(said).toEqual([]);
  const codec = await openedByEither(keyring, said.includes("rotated"));
  for (const step of ["as it was left", "with the rotation finished"]) {
    for (const [, sessionId = "", coded = ""] of said
      .filter((line) => line.startsWith("written "))
      .map((line) => line.split(" ")))
      if (sessionId !== "b" || !said.includes("destroying"))
        expect(textOf(codec, sessionId, "r1", coded), step).toBe(`text of ${sessionId}`);
      else if (said.includes("destroyed")) expect(() => textOf(codec, "b", "r1", coded)).toThrow("was destroyed");
    await codec.finishRotation();
  }
  expect(codec.status().isRotating).toBe(false);
  assertIntact(keyring);
  expect(textOf(codec, "new", "r1", encoded(codec, "new"))).toBe("text of new");
  codec.close();
}

/** Also what nobody acknowledged is there whole or not at all. */
function assertIntact(keyring: string): void {
  const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
  const database = new DatabaseSync(keyring, { readOnly: true });
  expect(database.prepare("PRAGMA integrity_check").all()).toMatchObject([{ integrity_check: "ok" }]);
  const numbers = (table: string): unknown => database.prepare(`SELECT number FROM ${table} WHERE number > 0`).all();
  expect(numbers("secrets")).toEqual(numbers("data_keys"));
  database.close();
}

function encoded(codec: Encryption, sessionId: string): string {
  const context = { namespace: "", agentId: "main", sessionId, id: "r1", part: "record" } as const;
  return Buffer.from(codec.encode(Buffer.from(`text of ${sessionId}`), context)).toString("base64");
}

describe.skipIf(!hasStrace)("kill -9 at a call of the system", () => {
  it.each(calls)(
    "%s: the keyring is whole, and has all that was acknowledged",
    { timeout: 3_600_000 },
    async (call) => {
      let kills = 0;
      const step = testSize({ short: 16, long: 1 });
      for (let number = 1; ; number += step) {
        const keyring = keyringPath();
        const { said, isKilled } = killedAt(call, number, keyring);
        await assertWhole(keyring, said);
        if (!isKilled) break;
        kills += 1;
      }
      expect(kills).toBeGreaterThan(0);
    },
  );
});
