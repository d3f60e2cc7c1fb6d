import { describe, expect, it } from "vitest";
import { wrapText } from "../src/wrap-text.ts";

describe("wrapping a text", () => {
  it("breaks lines at spaces, below their beginning", () => {
    expect(wrapText("one two three four five six", 20)).toBe("one two three four\nfive six");
    expect(wrapText("- one two three four five", 20)).toBe("- one two three four\n  five");
    expect(wrapText("  12. one two three four", 20)).toBe("  12. one two three\n      four");
    expect(wrapText("place: one two three", 20, "  ")).toBe("place: one two three");
    expect(wrapText("place: one two three four", 20, "  ")).toBe("place: one two three\n  four");
  });

  it("keeps words that are longer than a line, lines that fit, and everything without a width", () => {
    const path = "/a/".repeat(20);
    expect(wrapText(`see ${path} now`, 20)).toBe(`see\n${path}\nnow`);
    expect(wrapText("a  b\n\n  c", 20)).toBe("a  b\n\n  c");
    expect(wrapText("x ".repeat(100), null)).toBe("x ".repeat(100));
  });

  it("counts columns, not characters", () => {
    expect(wrapText("語".repeat(8) + " " + "語".repeat(8), 20)).toBe(`${"語".repeat(8)}\n${"語".repeat(8)}`);
  });

  it("takes a hostile line in linear time", () => {
    const spaces = `a${" ".repeat(200_000)}b`;
    expect(wrapText(spaces, 80).replaceAll(/\s/g, "")).toBe("ab");
    expect(wrapText(" ".repeat(200_000), 80).trim()).toBe("");
  });
});
