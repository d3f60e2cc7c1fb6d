import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, statSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { createSqliteStore } from "@throughline/store-sqlite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createSession } from "./test-folder.ts";

const isAsked = process.env["THROUGHLINE_LOOP_DEVICES"] === "all";

/** Loads and appends in a process of its own, which the system may end; gives what each step said. */
function useStore(path: string): { readonly signal: string | null; readonly codes: readonly string[] } {
  const program = fileURLToPath(new URL("./append-and-report.ts", import.meta.url));
  const args = ["--conditions=@throughline/source", program, path];
  const { signal, stdout } = spawnSync(process.execPath, args, { encoding: "utf8" });
  return { signal, codes: stdout.trim().split("\n") };
}

// Needs root and loop devices: the kernel ends the process, so that nothing stands for it.
describe.skipIf(!isAsked)("a full disk with blocks of 1 KiB", () => {
  let [folder, mount] = ["", ""];
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "small-blocks-"));
    mount = join(folder, "mount");
    mkdirSync(mount);
    const image = join(folder, "image");
    execFileSync("truncate", ["-s", "16M", image]);
    execFileSync("mkfs.ext4", ["-q", "-b", "1024", "-m", "0", image]);
    execFileSync("mount", ["-o", "loop", image, mount]);
  });
  afterAll(() => {
    execFileSync("umount", [mount]);
    rmSync(folder, { recursive: true });
  });

  const fill = (freeKiB: number): void => {
    const ballast = join(mount, "ballast");
    spawnSync("dd", ["if=/dev/zero", `of=${ballast}`, "bs=1024", "status=none"]);
    truncateSync(ballast, Math.max(0, statSync(ballast).size - freeKiB * 1024));
    execFileSync("sync", ["-f", mount]);
  };

  it("ends no process: every step is done or STORE_FULL", async () => {
    const whole = join(folder, "whole.db");
    await using store = createSqliteStore({ path: whole });
    await createSession(store, "a");
    await store.close();
    const path = join(mount, "store.db");
    for (const freeKiB of [0, 9, 20, 31, 41, 65, 80, 2000]) {
      for (const side of ["", "-wal", "-shm"]) rmSync(`${path}${side}`, { force: true });
      rmSync(join(mount, "ballast"), { force: true });
      cpSync(whole, path);
      fill(freeKiB);
      const { signal, codes } = useStore(path);
      expect(signal, String(freeKiB)).toBeNull();
      for (const code of codes) expect(code, String(freeKiB)).toMatch(/^(ok|STORE_FULL)$/);
    }
  });
});
