import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { expect, it, onTestFinished } from "vitest";
import { type KeyContext, readMainKey } from "../src/main-key.ts";

const canMount = spawnSync("unshare", ["-m", "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", "/mnt"]).status === 0;
const isRoot = process.getuid?.() === 0;

function keyFile(mode: number): { readonly folder: string; readonly path: string } {
  const folder = mkdtempSync(join(tmpdir(), "throughline-main-key-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "key");
  writeFileSync(path, "correct horse");
  chmodSync(path, mode);
  return { folder, path };
}

function contextOf(workingDirectory: string): KeyContext {
  return { config: { settings: [] } as never, environment: {}, workingDirectory, userHome: workingDirectory };
}

const read = ({ folder, path }: ReturnType<typeof keyFile>): ReturnType<typeof readMainKey> =>
  readMainKey(contextOf(folder), `file:${path}`, null);

it.skipIf(!canMount)(
  "a main key that a read-only mount shows to all is read, unless others could write it",
  async () => {
    for (const [mode, isRead] of [
      [0o444, true],
      [0o646, false],
    ] as const) {
      const file = keyFile(mode);
      await expect(read(file)).rejects.toMatchObject({ code: "PATH_UNSAFE" });
      execFileSync("mount", ["--bind", file.folder, file.folder]);
      try {
        execFileSync("mount", ["-o", "remount,bind,ro", file.folder]);
        const reading = read(file);
        if (isRead) expect(await reading).toEqual({ passphrase: "correct horse" });
        else await expect(reading).rejects.toMatchObject({ code: "PATH_UNSAFE" });
      } finally {
        execFileSync("umount", [file.folder]);
      }
    }
  },
);

it.skipIf(!isRoot)("a main key of another user that all can read is refused with a remedy for its mount", async () => {
  const file = keyFile(0o444);
  await expect(read(file)).rejects.toMatchObject({ remedy: `Close it: chmod 600 ${file.path}.` });
  chownSync(file.path, 12_345, 0);
  await expect(read(file)).rejects.toMatchObject({
    code: "PATH_UNSAFE",
    remedy: expect.stringMatching(/as its owner: chmod 600 .*`mode: 0400` \(Docker\) or `defaultMode: 0400`/),
  });
  chmodSync(file.path, 0o440);
  expect(await read(file)).toEqual({ passphrase: "correct horse" });
});
