import { Writable } from "node:stream";
import { createFinding } from "@throughline/core/internal";
import { describe, expect, it } from "vitest";
import { createFindingReport } from "../src/finding-report.ts";
import { createOutput } from "../src/output.ts";

describe("a report of findings", () => {
  it("has any number of them, also from one file", async () => {
    let lines = 0;
    const stream = (): Writable =>
      new Writable({
        write(chunk: Buffer, _encoding, done) {
          lines += chunk.toString().split("\n").length - 1;
          done();
        },
      });
    const options = { isJson: true, isQuiet: true, logLevel: "warn", color: "never" } as const;
    const report = createFindingReport(createOutput({ stdout: stream(), stderr: stream() }, options), "verify");
    const found = Array.from({ length: 200_000 }, (_, index) =>
      createFinding("LINE_MALFORMED", "The line is not JSON.", { line: index + 1 }),
    );
    await report.add(found);
    expect(report.findings.length).toBe(200_000);
    expect(lines).toBe(200_000);
  });
});
