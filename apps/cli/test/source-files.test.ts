import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { sourceFilesOf } from "../src/page/source-files.ts";
import { temporaryDirectory } from "./harness.ts";

const directory = temporaryDirectory();
afterEach(() => directory.remove());

it("names what is missing here, but not for a store that other machines share", async () => {
  const here = join(directory.path, "own.jsonl");
  mkdirSync(directory.path, { recursive: true });
  writeFileSync(here, "{}\n");
  const host = { environment: { PATH: directory.path } };
  const gone = { path: join(directory.path, "gone.jsonl"), cwd: directory.path, executable: "claude" };
  expect(await sourceFilesOf(host, true).missing(gone)).toEqual(["file", "program"]);
  expect(await sourceFilesOf(host, false).missing(gone)).toBeNull();
  // What is there belongs to this machine, and so does its program.
  expect(await sourceFilesOf(host, false).missing({ ...gone, path: here })).toEqual(["program"]);
});
