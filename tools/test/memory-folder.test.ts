import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { expect, it, onTestFinished } from "vitest";
import { removeDeadFolders } from "../memory-folder.ts";

const ended = spawnSync(process.execPath, ["--version"]).pid;

function parentWith(names: readonly string[]): string {
  const parent = mkdtempSync(join(tmpdir(), "throughline-"));
  onTestFinished(() => rmSync(parent, { recursive: true }));
  for (const name of names) mkdirSync(join(parent, name));
  return parent;
}

it("removes what killed runs left, and nothing of a run that goes on or of others", () => {
  const [dead, kept] = [`throughline-${ended}`, [`throughline-${process.pid}`, `throughline-cli-${ended}`]];
  const parent = parentWith([dead, ...kept]);
  writeFileSync(join(parent, dead, "file"), "left");
  removeDeadFolders(parent);
  expect(readdirSync(parent).toSorted()).toEqual(kept.toSorted());
});

it("gives a run one folder, however often it asks, which ends with it", () => {
  const parent = parentWith([]);
  const module = JSON.stringify(join(import.meta.dirname, "../memory-folder.ts"));
  const folders = `makeRunFolder(${JSON.stringify(parent)})`;
  const program = `import { makeRunFolder } from ${module};
    import { readdirSync, writeFileSync } from "node:fs";
    writeFileSync(${folders} + "/file", "left");
    console.log(${folders} === ${folders}, readdirSync(${folders}).join());`;
  const run = spawnSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8" });
  expect([run.stdout, run.stderr, readdirSync(parent)]).toEqual(["true file\n", "", []]);
});
