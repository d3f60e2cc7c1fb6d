import { describe, expect, it } from "vitest";
import { readTestPath } from "../product-tests.ts";
import { temporaryTree } from "./temporary-tree.ts";

const exported = { ".": { "@throughline/source": "./src/index.ts" } };
const product = {
  "packages/session/package.json": JSON.stringify({ name: "@throughline/session", exports: exported }),
  "packages/session/src/index.ts": "",
  "packages/session/src/inner.ts": "",
  "packages/core/package.json": JSON.stringify({ name: "@throughline/core", exports: exported }),
  "packages/core/src/index.ts": "",
  "packages/core/src/inner.ts": "",
  "packages/session/test/helper.ts": `import { createSessions } from "@throughline/session";`,
  "packages/session/test/inner-helper.ts": `import { inner } from "../src/inner.ts";`,
  "apps/cli/src/run-cli.ts": "",
  "apps/cli/src/open-store.ts": "",
  "apps/cli/src/inner.ts": "",
  "apps/cli/bin/throughline.js": "",
};

function reasonOf(path: string, text: string): string | null {
  const read = readTestPath(temporaryTree({ ...product, [path]: text }), path);
  return read.runsProduct ? null : read.reason;
}

describe("a test runs the product", () => {
  it.each([
    ["packages/session/test/a.test.ts", `import { createSessions } from "@throughline/session";`],
    ["packages/session/test/a.test.ts", `import { createWholeTurn } from "@throughline/session/whole-turn";`],
    ["packages/session/test/a.test.ts", `import { createSessions } from "../src/index.ts";`],
    ["packages/session/test/a.test.ts", `import { fixture } from "./helper.ts";`],
    [
      "packages/session/test/a.test.ts",
      `spawn(process.execPath, [fileURLToPath(new URL("helper.ts", import.meta.url))])`,
    ],
    ["packages/session/test/a.test.ts", `import "@throughline/session"; import type { Inner } from "../src/inner.ts";`],
    ["packages/session/test/a.test.ts", `import "@throughline/session"; import { type Inner } from "../src/inner.ts";`],
    ["packages/store-conformance/src/cases.ts", `import type { SessionStore } from "@throughline/core";`],
    ["apps/cli/test/a.test.ts", `import { runCli } from "../src/run-cli.ts";`],
    ["apps/cli/test/a.test.ts", `spawn(process.execPath, [join(import.meta.dirname, "../bin/throughline.js")])`],
    ["apps/cli/test/a.test.ts", `import "../src/run-cli.ts"; import { openStore } from "../src/open-store.ts";`],
    ["tools/test/a.test.ts", `import { createSessions } from "@throughline/session";`],
  ])("%s: %s", (path, text) => {
    expect(reasonOf(path, text)).toBeNull();
  });
});

describe("a test does not run the product", () => {
  it.each([
    [
      "packages/core/test/a.test.ts",
      `import "@throughline/session";`,
      "packages/core/test is no folder of product tests",
    ],
    ["packages/session/test/a.test.ts", `import { parse } from "@throughline/core";`, "never enters the product"],
    [
      "packages/session/test/a.test.ts",
      `import type { Session } from "@throughline/session";`,
      "never enters the product",
    ],
    ["packages/session/test/a.test.ts", `// import "@throughline/session";`, "never enters the product"],
    ["packages/session/test/a.test.ts", `const name = "@throughline/session";`, "never enters the product"],
    [
      "packages/session/test/a.test.ts",
      `import "@throughline/session"; import { inner } from "../src/inner.ts";`,
      "imports packages/session/src/inner.ts",
    ],
    [
      "packages/session/test/a.test.ts",
      `import "@throughline/session"; const { inner } = await import("../../core/src/inner.ts");`,
      "imports packages/core/src/inner.ts",
    ],
    [
      "packages/session/test/a.test.ts",
      `import "@throughline/session"; import { fixture } from "./inner-helper.ts";`,
      "packages/session/test/inner-helper.ts imports packages/session/src/inner.ts",
    ],
    ["apps/cli/test/a.test.ts", `import { openStore } from "../src/open-store.ts";`, "never enters the product"],
    [
      "apps/cli/test/a.test.ts",
      `import "../src/run-cli.ts"; import { inner } from "../src/inner.ts";`,
      "imports apps/cli/src/inner.ts",
    ],
  ])("%s: %s", (path, text, reason) => {
    expect(reasonOf(path, text)).toBe(reason);
  });
});
