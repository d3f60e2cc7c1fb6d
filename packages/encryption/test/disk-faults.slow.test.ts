import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, chownSync, mkdtempSync, readdirSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import type { CodecContext } from "@throughline/core/internal";
import { createKeyring, openEncryption } from "@throughline/encryption";
import { describe, expect, it, onTestFinished } from "vitest";
import { bundledWorker } from "../../../tools/bundle-worker.ts";
import { keyringPath, mainKey, opened } from "./temporary-keyring.ts";

const place: CodecContext = { namespace: "", agentId: "main", sessionId: "s", id: "r1", part: "record" };
const text = Buffer.from("a planted word");

const canMount = spawnSync("unshare", ["-m", "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", "/mnt"]).status === 0;

/** A folder on a file system of its own. */
function smallDisk(): string {
  const folder = mkdtempSync(join(tmpdir(), "throughline-keyring-"));
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=512k", "tmpfs", folder]);
  onTestFinished(() => {
    execFileSync("umount", [folder]);
    rmSync(folder, { recursive: true });
  });
  return folder;
}

function fill(folder: string): string {
  const { bavail, bsize } = statfsSync(folder);
  const path = join(folder, "filler");
  writeFileSync(path, Buffer.alloc(bavail * bsize));
  return path;
}

describe.skipIf(!canMount)("a keyring on a disk that fails", () => {
  it("makes no key when the disk is full, reads what is there, and makes keys when there is room", async () => {
    const folder = smallDisk();
    const keyring = join(folder, "keys.db");
    await createKeyring({ keyring, mainKey });
    const codec = await opened(keyring);
    const coded = codec.encode(text, place);
    const filler = fill(folder);
    const refusal = { code: "KEYRING_IO", outcome: "not-applied" };
    for (let session = 0; session < 20; session++)
      expect(() => codec.encode(text, { ...place, sessionId: `t${session}` })).toThrow(
        expect.objectContaining(refusal),
      );
    expect(codec.decode(coded, place)).toEqual(text);
    rmSync(filler);
    const later = { ...place, sessionId: "t0" };
    const again = codec.encode(text, later);
    codec.close();
    const reopened = await opened(keyring);
    for (const [each, at] of [
      [coded, place],
      [again, later],
    ] as const)
      expect(reopened.decode(each, at)).toEqual(text);
    expect(reopened.status().keys).toBe(2);
  });

  it("is not created when the disk is full, and leaves no part of it", async () => {
    const folder = smallDisk();
    fill(folder);
    await expect(createKeyring({ keyring: join(folder, "keys.db"), mainKey })).rejects.toMatchObject({
      code: "KEYRING_IO",
      outcome: "not-applied",
    });
    expect(readdirSync(folder)).toEqual(["filler"]);
  });

  it("that cannot be written decrypts, and makes no key", async () => {
    const folder = smallDisk();
    const keyring = join(folder, "keys.db");
    await createKeyring({ keyring, mainKey });
    const first = await openEncryption({ keyring, mainKey });
    const coded = first.encode(text, place);
    first.close();
    execFileSync("mount", ["-o", "remount,ro", folder]);
    const codec = await opened(keyring);
    expect(codec.decode(coded, place)).toEqual(text);
    expect(codec.decode(codec.encode(text, place), place)).toEqual(text);
    expect(() => codec.encode(text, { ...place, sessionId: "t" })).toThrow("it cannot be written");
    await expect(codec.destroyKeys({ namespace: "", agentId: "main" }, "a")).rejects.toMatchObject({
      code: "KEYRING_IO",
    });
    expect(codec.decode(coded, place)).toEqual(text);
  });
});

const hasStrace = spawnSync("strace", ["-V"]).status === 0;
const openKeyring = bundledWorker(new URL("./open-keyring.ts", import.meta.url));

/** Opens a keyring in a process for which changing the rights of a file fails, as on FAT. */
function openedWithoutRights(keyring: string): string {
  const inject = "inject=?chmod,?fchmodat:error=EPERM";
  const { stdout, stderr } = spawnSync(
    "strace",
    ["-f", "-o", "/dev/null", "-e", "trace=?chmod,?fchmodat", "-e", inject, process.execPath, openKeyring, keyring],
    { encoding: "utf8" },
  );
  return stdout === "" ? stderr : stdout;
}

describe.skipIf(!hasStrace || process.getuid?.() !== 0)("a keyring on a file system without rights", () => {
  it("opens for its owner, and for nobody while it belongs to another user", async () => {
    const keyring = keyringPath();
    await createKeyring({ keyring, mainKey });
    const { keyringId } = (await opened(keyring)).status();
    chmodSync(keyring, 0o755);
    expect(openedWithoutRights(keyring)).toBe(keyringId);
    chownSync(keyring, 12_345, 0);
    expect(openedWithoutRights(keyring)).toContain("it belongs to one of them");
  });
});
