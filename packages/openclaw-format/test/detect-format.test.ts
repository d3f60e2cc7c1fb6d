import { describe, expect, it } from "vitest";
import { attachEnvelope } from "../src/line-envelope.ts";
import { detectDirectoryLayout, detectLineFormat } from "../src/detect-format.ts";
import { header, message } from "./read-transcript.ts";

describe("detectLineFormat", () => {
  it.each([
    [[JSON.stringify(header)], "pi"],
    [[JSON.stringify({ ...header, version: 4 })], "openclaw"],
    [[JSON.stringify(message("a", null, "x"))], "pi"],
    [["", "{broken", JSON.stringify(header)], "pi"],
    [[JSON.stringify({ type: "session", id: "x", key: "main:cli:user", created: "2025-01-01" })], "claw0"],
    [[JSON.stringify({ type: "user", content: "x", ts: 1 })], "claw0"],
    [[attachEnvelope(JSON.stringify(header), { seq: 0 })], "jsonl"],
    [[], "unknown"],
    [["text"], "unknown"],
    [['{"a":1}'], "unknown"],
    // Two agents' own formats, which share names with this one.
    [[JSON.stringify({ type: "user", message: { role: "user", content: "x" }, uuid: "u", sessionId: "s" })], "unknown"],
    [[JSON.stringify({ timestamp: "t", type: "session_meta", payload: {} })], "unknown"],
  ])("%j is %s", (lines, format) => {
    expect(detectLineFormat(lines)).toBe(format);
  });
});

describe("detectDirectoryLayout", () => {
  const folder = (name: string): { name: string; isDirectory: boolean } => ({ name, isDirectory: true });
  const file = (name: string): { name: string; isDirectory: boolean } => ({ name, isDirectory: false });

  it.each([
    [[folder("agents"), file("openclaw.json")], "state"],
    [[folder("sessions"), folder("agent")], "agent"],
    [[folder("sessions"), folder("throughline")], "own-agent"],
    [[folder("sessions"), file("sessions.json")], "claw0-agent"],
    [[folder("transcripts"), file("sessions.json")], "claw0-keyed"],
    [[folder(".sessions"), file("notes.md")], "claw0-root"],
    [[file("sessions.json"), file("x.jsonl")], "sessions"],
    [[folder("--home-u-project--")], "pi-root"],
    [[file("x.jsonl")], "transcripts"],
    [[file("x.jsonl.reset.2026-03-01T00-00-00.000Z")], "transcripts"],
    [[file("x.json")], "unknown"],
    [[], "unknown"],
  ])("%j is %s", (names, layout) => {
    expect(detectDirectoryLayout(names)).toBe(layout);
  });
});
