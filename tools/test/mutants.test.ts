import { describe, expect, it } from "vitest";
import { type Ending, outcomeOf } from "../mutants.ts";

const ended = (ending: Partial<Ending>) => outcomeOf({ status: 1, stdout: "", stderr: "", ...ending });

describe("the outcome of a run with a mutant", () => {
  it("is a failure where a test or the compiler names one, a test before what it printed", () => {
    const stderr = "an error is told\n FAIL  core packages/core/test/a.test.ts > adds\n";
    expect(ended({ stderr })).toEqual({ kind: "failed", text: "FAIL  core packages/core/test/a.test.ts > adds" });
    const line = "packages/core/src/a.ts(1,1): error TS2322: no.";
    expect(ended({ stdout: `${line}\n`, status: 2 })).toEqual({ kind: "failed", text: line });
  });

  it("is unknown where the run was stopped, or names no failure", () => {
    const stdout = " FAIL  core packages/core/test/a.test.ts > adds\n";
    const late = Object.assign(new Error("spawnSync vitest ETIMEDOUT"), { code: "ETIMEDOUT" });
    expect(ended({ status: null, signal: "SIGTERM", error: late, stdout })?.kind).toBe("unknown");
    expect(ended({ status: null, signal: "SIGKILL", stdout })?.kind).toBe("unknown");
    expect(ended({ stdout: "error: an option is not known\n" })?.kind).toBe("unknown");
  });

  it("is null where the run passed", () => {
    expect(ended({ status: 0, stdout: " FAIL  is a word of a test\n" })).toBeNull();
  });
});
