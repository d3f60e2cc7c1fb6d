import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { checkAgainstKernel, mountLoopDisk, type LoopDisk } from "../packages/store-jsonl/test/kernel-check.ts";

/** Null, with the reason on stdout, where the system does not allow it. */
function mounted(kind: "ext4" | "xfs", folder: string): LoopDisk | null {
  try {
    return mountLoopDisk(kind, folder);
  } catch (error) {
    const [why = ""] = (error instanceof Error ? error.message : String(error)).split("\n");
    process.stdout.write(`skipped: ${kind}: ${why}\n`);
    return null;
  }
}

/**
 * Checks the simulated disk against the kernel: random work on loop-mounted ext4 and xfs, cut off with FS_IOC_SHUTDOWN,
 * must end in a state that the simulation enumerates. Needs root, loop devices, python3 and mkfs.xfs (xfsprogs).
 * node --conditions=@throughline/source tools/crash-kernel.ts [--workloads 200] [--seed 1] [--fs ext4|xfs]
 */
if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      workloads: { type: "string", default: "200" },
      seed: { type: "string", default: "1" },
      // Both without it.
      fs: { type: "string" },
    },
  });
  if (process.getuid?.() !== 0 || spawnSync("losetup", ["-f"]).status !== 0) {
    process.stdout.write("skipped: needs root and loop devices\n");
  } else {
    const folder = mkdtempSync(join(tmpdir(), "throughline-kernel-"));
    let unknown = 0;
    for (const kind of (["ext4", "xfs"] as const).filter((each) => each === (values.fs ?? each))) {
      const disk = mounted(kind, folder);
      if (disk === null) continue;
      try {
        let states = 0;
        const strange: number[] = [];
        for (let index = 0; index < Number(values.workloads); index++) {
          const seed = Number(values.seed) + index;
          const result = await checkAgainstKernel(disk, seed);
          states += result.states;
          if (!result.isKnown) strange.push(seed);
        }
        unknown += strange.length;
        const seeds = strange.length === 0 ? "" : `: seeds ${strange.join(", ")}`;
        process.stdout.write(
          `${kind}: ${values.workloads} power cuts, ${states} states enumerated, ${strange.length} ended elsewhere${seeds}\n`,
        );
      } finally {
        disk.unmount();
      }
    }
    rmSync(folder, { recursive: true, force: true });
    process.exitCode = unknown === 0 ? 0 : 1;
  }
}
