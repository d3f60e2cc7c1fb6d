import { crc32 } from "node:zlib";
import { hasErrorCode, type ThroughlineError } from "@throughline/core";
import { createPostgresStore, type PostgresStoreOptions } from "@throughline/store-postgres";
import { describe, expect, it } from "vitest";
import { arrayLiteral } from "../src/array-literal.ts";
import { joinChecksums } from "../src/join-checksums.ts";
import { newNumber } from "../src/relocation.ts";
import { beginning, settingsPassedOn } from "../src/statement-settings.ts";

describe("what needs no server", () => {
  it("an array is written as PostgreSQL reads it", () => {
    expect(arrayLiteral(["a", null, 'q"\\', 1, true, Uint8Array.of(1, 255)])).toBe(
      String.raw`{"a",NULL,"q\"\\",1,true,"\\x01ff"}`,
    );
  });

  it("a transaction begins in one round trip, and BEGIN stands alone where Citus passes the settings on", () => {
    expect(beginning(5, "")).toHaveLength(1);
    const [begin, settings, ...more] = beginning(5, settingsPassedOn);
    expect([begin, more]).toEqual(["BEGIN ISOLATION LEVEL READ COMMITTED", []]);
    expect(settings).toContain("SET LOCAL lock_timeout = 5");
  });

  it("numbers that nodes of Citus gave follow each other at the target, and none leaves its range", () => {
    const numbers = { offset: 100n, end: 100n + 3n * 2n ** 33n, isOfNodes: true };
    const moved = (number: bigint): string => newNumber({ numbers }, String(number));
    expect([moved(7n), moved(2n ** 48n + 7n)]).toEqual(["107", String(2n ** 33n + 107n)]);
    for (const outside of [2n ** 33n, 2n ** 48n * 3n + 1n])
      expect(() => moved(outside)).toThrow("The target has no number reserved for a session of the source.");
    expect(newNumber({ numbers: { ...numbers, isOfNodes: false } }, "7")).toBe("107");
  });

  it("checksums of two texts join to that of both", () => {
    for (const [one, other] of [
      ["a", "b"],
      ["", "x"],
      ["x".repeat(1000), "y".repeat(12_345)],
      ["ä", ""],
    ] as const)
      expect(joinChecksums(crc32(one), crc32(other), Buffer.byteLength(other))).toBe(crc32(one + other));
  });

  it("a URL that cannot be read is refused without being repeated", () => {
    for (const bad of ["mysql://ada:secret@host/db", "postgres//ada:secret@host", "secret"]) {
      const error: unknown = (() => {
        try {
          return createPostgresStore({ url: bad });
        } catch (reason) {
          return reason;
        }
      })();
      expect(hasErrorCode(error, "STORE_URL_INVALID")).toBe(true);
      expect(JSON.stringify([String(error), (error as ThroughlineError).details])).not.toContain("secret");
    }
  });

  it.each([
    ["timeoutMs", Number.NaN],
    ["connectTimeoutMs", -1],
    ["lockTimeoutMs", "10s"],
    ["pollMs", Number.NaN],
    ["maxConnections", 0],
    ["maxWaiting", Number.NaN],
    ["partitions", 0],
    ["partitions", 1.5],
    ["partitions", 1e9],
  ])("an option that is out of its range is refused before anything is made: %s %s", (name, value) => {
    const options = { url: "postgres://ada:secret@127.0.0.1:1/db", [name]: value } as PostgresStoreOptions;
    expect(() => createPostgresStore(options)).toThrow(
      expect.objectContaining({ code: "CONFIG_INVALID", message: expect.stringContaining(name) as string }) as Error,
    );
  });

  it("a server that is not there is said in bounded time, without the password", async () => {
    await using store = createPostgresStore({ url: "postgres://ada:secret@127.0.0.1:1/db", timeoutMs: 300 });
    const error: unknown = await store.list().catch((reason: unknown) => reason);
    expect(hasErrorCode(error, "STORE_UNREACHABLE") && [error.outcome, error.retryable]).toEqual(["not-applied", true]);
    expect(JSON.stringify([String(error), (error as ThroughlineError).details])).not.toContain("secret");
    expect(String(error)).toContain("127.0.0.1:1/db");
  });
});
