import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { withDirectImports } from "../direct-imports.ts";
import { repositoryRoot } from "../find-files.ts";

const file = (path: string): string => JSON.stringify(join(repositoryRoot, path));

function direct(text: string): string {
  return withDirectImports(text, "/somewhere/file.ts");
}

describe("imports past entry points", () => {
  it("lead to the files that have the names, on as many lines as before", () => {
    expect(
      direct('import {\n  guardCall as call,\n  guardApiCall,\n} from "@throughline/guard";\ncall(guardApiCall);\n'),
    ).toBe(
      `import { guardCall as call } from ${file("packages/guard/src/guard-call.ts")}; ` +
        `import { guardApiCall as guardApiCall } from ${file("packages/guard/src/guard-api-call.ts")};\n\n\n\ncall(guardApiCall);\n`,
    );
  });

  it("leave types out", () => {
    expect(
      direct(
        'import type { GuardOptions } from "@throughline/guard";\nimport { type GuardOptions as Options } from "@throughline/guard";\n',
      ),
    ).toBe("\n\n");
  });

  it.each([
    'import { openSession } from "@throughline/core";',
    'import * as guard from "@throughline/guard";',
    'import "@throughline/guard";',
    'import { readFileSync } from "node:fs";',
    'const { guardCall } = await import("@throughline/guard");',
    'export { guardCall } from "@throughline/guard";',
  ])("leave alone %s", (text) => {
    expect(direct(text)).toBe(text);
  });

  it("keep the entry point for a name that it has from another package", () => {
    expect(direct('import { readUsage } from "@throughline/tokens";')).toBe(
      'import { readUsage as readUsage } from "@throughline/tokens";',
    );
  });

  it("refuse an entry point that the package does not have", () => {
    expect(() => direct('import { x } from "@throughline/guard/none";')).toThrow("is no entry point");
  });
});
