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
      direct('import {\n  resolveSession as find,\n  readTail,\n} from "@throughline/queries";\nfind(readTail);\n'),
    ).toBe(
      `import { resolveSession as find } from ${file("packages/queries/src/resolve-session.ts")}; ` +
        `import { readTail as readTail } from ${file("packages/queries/src/read-tail.ts")};\n\n\n\nfind(readTail);\n`,
    );
  });

  it("leave types out", () => {
    expect(
      direct(
        'import type { SessionRow } from "@throughline/queries";\nimport { type SessionRow as Row } from "@throughline/queries";\n',
      ),
    ).toBe("\n\n");
  });

  it.each([
    'import { openSession } from "@throughline/core";',
    'import * as queries from "@throughline/queries";',
    'import "@throughline/queries";',
    'import { readFileSync } from "node:fs";',
    'const { readTail } = await import("@throughline/queries");',
    'export { readTail } from "@throughline/queries";',
  ])("leave alone %s", (text) => {
    expect(direct(text)).toBe(text);
  });

  it("keep the entry point for a name that it has from another package", () => {
    expect(direct('import { readUsage } from "@throughline/tokens";')).toBe(
      'import { readUsage as readUsage } from "@throughline/tokens";',
    );
  });

  it("refuse an entry point that the package does not have", () => {
    expect(() => direct('import { x } from "@throughline/queries/none";')).toThrow("is no entry point");
  });
});
