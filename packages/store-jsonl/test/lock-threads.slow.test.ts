import { spawnSync } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const script = fileURLToPath(new URL("open-locks-together.ts", import.meta.url));

it.runIf(process.platform === "linux")(
  "a lock that one thread has taken stays the process's while another one opens it for the first time too",
  { timeout: 60_000 },
  () => {
    const args = ["--conditions=@throughline/source", script, newFolder(), testSize({ short: "3000", long: "30000" })];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
    expect([status, stderr, stdout]).toEqual([0, "", "0"]);
  },
);
