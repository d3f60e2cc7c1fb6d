import { join } from "node:path";
import { eraseSessions } from "@throughline/encryption";
import { createSqliteStore } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { refOf, say } from "./append-drafts.ts";
import { createSession, testFolder } from "./test-folder.ts";
import { describeStoreConformance } from "@throughline/store-conformance";
import { describeEncryptedStore, encryptedRunner, encryptionForTests } from "@throughline/test-kit/encryption";
import { openUnderTest } from "./store-under-test.ts";

const encryption = await encryptionForTests();

describeStoreConformance({
  name: "store-sqlite",
  runner: encryptedRunner(),
  open: () => openUnderTest(),
  openWithCodec: (codec) => openUnderTest(codec),
  codec: encryption,
});

describeEncryptedStore({ name: "store-sqlite", encryption, open: (codec) => openUnderTest(codec) });

describe("a backup of store-sqlite with encryption", () => {
  it("has an erased session no more, and each other one still", async () => {
    const path = join(testFolder(), "store.db");
    await using store = createSqliteStore({ path, codec: encryption });
    for (const name of ["a", "b", "c"]) await store.append(await createSession(store, name), [say(`text of ${name}`)]);
    await store.maintenance?.backup(`${path}.backup`);
    await eraseSessions(store, encryption, [refOf("b")], { reason: "asked for" });
    await using backup = createSqliteStore({ path: `${path}.backup`, codec: encryption });
    const refusal = { code: "CODEC_FAILED", details: { reason: "KEY_DESTROYED" } };
    await expect(Array.fromAsync(backup.read(refOf("b")))).rejects.toMatchObject(refusal);
    for (const name of ["a", "c"]) {
      const [page] = await Array.fromAsync(backup.read(refOf(name)));
      expect(page?.records[0]?.record["message"]).toMatchObject({ content: `text of ${name}` });
    }
    const listed = (await backup.list()).sessions.map(({ ref, entry }) => `${ref.key} ${String(entry["label"])}`);
    const erased = `${refOf("b").key} erased on ${new Date().toISOString().slice(0, 4)}`;
    expect(listed.toSorted()).toEqual([
      `${refOf("a").key} undefined`,
      expect.stringContaining(erased),
      `${refOf("c").key} undefined`,
    ]);
  });
});
