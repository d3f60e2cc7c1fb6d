import { describe, expect, it } from "vitest";
import { createFinding, findingCodes } from "../src/finding.ts";
import { errorCodes } from "../src/error-codes.ts";
import { hasErrorCode, ThroughlineError } from "@throughline/core";
import { isFromNewerVersion, throughlineDraft } from "../src/throughline-record.ts";

describe("ThroughlineError", () => {
  it("carries what a program decides by", () => {
    const cause = new Error("disk");
    const error = new ThroughlineError("STORE_FULL", "No space for 12 bytes.", {
      outcome: "not-applied",
      cause,
      details: { path: "a" },
    });
    expect(error).toMatchObject({
      name: "ThroughlineError",
      code: "STORE_FULL",
      retryable: true,
      outcome: "not-applied",
      cause,
      details: { path: "a" },
    });
    expect(error.remedy).toBe(errorCodes.STORE_FULL.remedy);
    expect(new ThroughlineError("USAGE", "x", { remedy: "y" }).remedy).toBe("y");
  });

  it("is known across copies of the package by its brand, and by nothing else", () => {
    const error = new ThroughlineError("ABORTED", "x");
    expect(ThroughlineError.isInstance(error)).toBe(true);
    expect(ThroughlineError.isInstance({ [Symbol.for("throughline.error")]: true })).toBe(true);
    expect(ThroughlineError.isInstance(new Error("x"))).toBe(false);
    expect(ThroughlineError.isInstance(null)).toBe(false);
    expect(hasErrorCode(error, "USAGE", "ABORTED")).toBe(true);
    expect(hasErrorCode(error, "USAGE")).toBe(false);
    expect(JSON.stringify(Object.keys(error))).not.toContain("throughline.error");
  });

  it("has a summary and a remedy for every code", () => {
    for (const [code, entry] of Object.entries({ ...errorCodes })) {
      expect(code).toMatch(/^[A-Z]+(_[A-Z]+)*$/);
      expect(entry.summary).toMatch(/\.$/);
      expect(entry.remedy).toMatch(/\.$/);
    }
  });
});

describe("createFinding", () => {
  it("takes severity and remedy from the table and leaves unknown places null", () => {
    expect(createFinding("TAIL_TORN", "m", { line: 3 })).toEqual({
      code: "TAIL_TORN",
      severity: "warning",
      path: null,
      key: null,
      line: 3,
      byteOffset: null,
      recordId: null,
      message: "m",
      remedy: findingCodes.TAIL_TORN.remedy,
      repaired: false,
    });
  });
});

describe("isFromNewerVersion", () => {
  const base = { id: "a", parentId: null, timestamp: "2026-01-01T00:00:00.000Z" };
  it.each([
    [{ ...base, type: "message" }, false],
    [{ ...base, ...throughlineDraft("edit", {}) }, false],
    [{ ...base, ...throughlineDraft("edit", {}), v: 2 }, true],
    [{ ...base, ...throughlineDraft("call", {}), v: 9 }, false],
    [{ ...base, ...throughlineDraft("call", {}), v: 9, critical: true }, true],
    [{ ...base, type: "custom", customType: "throughline.unheard-of", v: 1, critical: true }, true],
    [{ ...base, type: "custom", customType: "throughline.unheard-of", v: 1, critical: false }, false],
    [{ ...base, type: "custom", customType: "someone.elses", critical: true }, false],
    [{ ...base, type: "custom", customType: "throughline.toString", critical: false }, false],
  ])("%j: %s", (record, expected) => {
    expect(isFromNewerVersion(record)).toBe(expected);
  });
});
