import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describeStoreConformance } from "@throughline/store-conformance";
import { afterAll, describe, inject, it } from "vitest";
import { describeEncryptedStore, encryptedRunner, encryptionForTests } from "@throughline/test-kit/encryption";
import { endPools, openUnderTest, withClient } from "./store-under-test.ts";

const place = inject("postgres");

afterAll(endPools);

if ("unavailable" in place) {
  describe("store-postgres keeps the store contract with encryption", () => {
    it.skip(`needs PostgreSQL: ${place.unavailable}`, () => undefined);
  });
} else {
  const codec = await encryptionForTests();
  for (const layout of ["plain", "tenant"] as const) {
    describeEncryptedStore({
      name: `store-postgres, ${layout} layout,`,
      encryption: codec,
      open: (given) => openUnderTest(place.url, given, { layout }),
      elsewhere: (sinceMs) => serverContents(place, sinceMs),
    });
    describeStoreConformance({
      name: `store-postgres, ${layout} layout`,
      runner: encryptedRunner(),
      open: () => openUnderTest(place.url, undefined, { layout }),
      openWithCodec: (given) => openUnderTest(place.url, given, { layout }),
      codec,
    });
  }
}

/**
 * The statistics of the server, and what it wrote into its data directory since a time, with a checkpoint at the end:
 * tables, indexes and the write-ahead log. Other tests leave gigabytes there, which do not change.
 */
async function serverContents(
  { url, dataFolder }: { readonly url: string; readonly dataFolder: string },
  sinceMs: number,
): Promise<readonly Uint8Array[]> {
  const statistics = await withClient(url, async (client) => {
    await client.query("ANALYZE");
    await client.query("CHECKPOINT");
    const { rows } = await client.query("SELECT * FROM pg_stats");
    return Buffer.from(JSON.stringify(rows));
  });
  const names = readdirSync(dataFolder, { recursive: true, encoding: "utf8" });
  return [statistics, ...names.flatMap((name) => contentOf(join(dataFolder, name), sinceMs))];
}

/** The server removes files at any time, also those of other tests: a dropped table, or a part of the log. */
function contentOf(path: string, sinceMs: number): readonly Uint8Array[] {
  try {
    const stats = statSync(path);
    // The clock of a file system is coarser than that of a process.
    return stats.isFile() && stats.mtimeMs > sinceMs - 2000 ? [readFileSync(path)] : [];
  } catch (error) {
    if ((error as { readonly code?: string }).code === "ENOENT") return [];
    throw error;
  }
}
