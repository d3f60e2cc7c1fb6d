import { execFile } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";
import { findUserHome } from "@throughline/config/internal";
import { binPath, cleanEnvironment, sourceCondition, temporaryDirectory } from "./harness.ts";

const directory = temporaryDirectory();
afterAll(() => directory.remove());

describe("where the command line is started", () => {
  it.each([
    ["/home/ada", "/home/ada"],
    ["ada", "/srv/ada"],
    // An empty HOME would make `.throughline` of the working directory, another store in each.
    ["", "/home/account"],
  ])("HOME=%s is %s", (home, expected) => {
    const sources = { fromEnvironment: () => home, fromAccount: () => "/home/account" };
    expect(findUserHome("/srv", sources)).toBe(expected);
  });

  it("a user id without an account has / for a home, as in a container", () => {
    const unknown = (): never => {
      throw new Error("uv_os_homedir returned ENOENT");
    };
    expect(findUserHome("/srv", { fromEnvironment: unknown, fromAccount: unknown })).toBe("/");
  });

  it("a folder that was removed is a typed error", async () => {
    const gone = join(directory.path, "gone");
    mkdirSync(gone);
    const script = 'rmdir "$PWD" && exec "$@"';
    const args = ["-c", script, "sh", process.execPath, sourceCondition, binPath, "sessions", "--json"];
    const failure = (await promisify(execFile)("sh", args, { cwd: gone, env: cleanEnvironment(directory.path) }).catch(
      (error: unknown) => error,
    )) as { code: number; stdout: string; stderr: string };
    expect([failure.code, failure.stdout]).toEqual([1, ""]);
    expect(JSON.parse(failure.stderr)).toMatchObject({ kind: "error", code: "FILE_NOT_FOUND" });
  });
});
