import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  appendGarbage,
  appendZeros,
  cutFile,
  filePrefixes,
  flipByte,
  killProcess,
} from "@throughline/store-conformance";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

describe("fault helpers", () => {
  let folder = "";
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "throughline-faults-"));
  });
  afterEach(() => rm(folder, { recursive: true }));

  it("damage a file where they are told to", async () => {
    const path = join(folder, "file");
    await writeFile(path, "abc");
    const sizes: number[] = [];
    for await (const { sizeBytes, bytes } of filePrefixes(path, 1)) {
      expect(Buffer.from(bytes).toString()).toBe("abc".slice(0, sizeBytes));
      sizes.push(sizeBytes);
    }
    expect(sizes).toEqual([1, 2, 3]);
    await flipByte(path, 1);
    await appendGarbage(path, "x");
    await appendZeros(path, 2);
    expect(await readFile(path, "latin1")).toBe("accx\0\0");
    await cutFile(path, 2);
    expect(await readFile(path, "latin1")).toBe("ac");
    await expect(flipByte(path, 9)).rejects.toThrow(RangeError);
  });

  it("kill a process after its first acknowledgement and give back what it said", async () => {
    const scriptPath = join(folder, "writer.mjs");
    await writeFile(scriptPath, "let n = 0; setInterval(() => process.stdout.write(`${++n}\\n`), 1);");
    const { acknowledged, wasKilled } = await killProcess({ scriptPath, execArgv: [], maxDelayMs: 20 });
    expect(wasKilled).toBe(true);
    expect(acknowledged).toEqual(acknowledged.map((_line, index) => String(index + 1)));
    expect(acknowledged.length).toBeGreaterThan(0);
  });

  it("say when a process ended by itself", async () => {
    const scriptPath = join(folder, "ends.mjs");
    await writeFile(scriptPath, "console.error('why'); process.exitCode = 3;");
    expect(await killProcess({ scriptPath, execArgv: [] })).toEqual({
      acknowledged: [],
      wasKilled: false,
      stderr: "why\n",
    });
  });
});
