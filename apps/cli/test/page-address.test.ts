import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { pageAddress } from "../src/page/page-address.ts";
import { findPageFolder } from "../src/page/page-folder.ts";
import { whenIdle } from "../src/page/serve-beside.ts";

describe("the address of a session on the page", () => {
  const ref = { namespace: "", agentId: "main", key: "agent:main:cli:direct:a/b?#ü" };
  const segment = `~${Buffer.from(ref.key).toString("base64url")}`;

  it.each([
    [null, null, "http://127.0.0.1:1/inspect/"],
    [{ ref, seq: null }, null, `http://127.0.0.1:1/inspect/s/${segment}`],
    [{ ref, seq: 412 }, "tl_x", `http://127.0.0.1:1/inspect/s/${segment}?at=412#token=tl_x`],
    [{ ref: { ...ref, key: "global" }, seq: null }, null, "http://127.0.0.1:1/inspect/s/~Z2xvYmFs?agent=main"],
    [
      { ref: { ...ref, key: "agent:ada:x", agentId: "ada", archiveId: "a 1" }, seq: 3 },
      null,
      "http://127.0.0.1:1/inspect/s/~YWdlbnQ6YWRhOng?archive=a+1&at=3",
    ],
  ])("%#: has the key without a sign that a browser reads", (place, token, address) => {
    expect(pageAddress("http://127.0.0.1:1/", place, token)).toBe(address);
    expect(URL.parse(address)?.href).toBe(address);
  });
});

it("finds the page beside the program, from a source, the bundle and a chunk", () => {
  const root = mkdtempSync(join(tmpdir(), "throughline-page-"));
  try {
    for (const name of ["src/page", "dist/chunks", "dist/inspect"]) mkdirSync(join(root, name), { recursive: true });
    writeFileSync(join(root, "package.json"), "{}");
    const from = ["src/page", "dist", "dist/chunks"].map((name) => join(root, name));
    expect(from.map((folder) => findPageFolder(folder))).toEqual([null, null, null]);
    writeFileSync(join(root, "dist/inspect/files.json"), "[]");
    expect(from.map((folder) => findPageFolder(folder))).toEqual(from.map(() => join(root, "dist/inspect")));
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});

it("ends when nobody has asked for some time, and not before", async () => {
  let idleMs = 0;
  using idle = whenIdle({ idleMs: () => idleMs }, { afterMs: 100, everyMs: 5 });
  await new Promise((resolve) => setTimeout(resolve, 40));
  expect(idle.aborted).toBe(false);
  idleMs = 100;
  await expect.poll(() => idle.aborted).toBe(true);
});
