import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  guardSteps,
  isFinal,
  nextRemedy,
  ownCures,
  remedyLadders,
  type GuardState,
  type Remedy,
} from "../src/guard-steps.ts";
import { classifyOverflow } from "@throughline/guard";
import { recoveryAction } from "../src/recovery-action.ts";
import type { OverflowKind } from "../src/overflow.ts";

/** The rows of the table under a heading of SPEC.md. */
function rowsOf(heading: string): string[][] {
  const text = readFileSync(join(import.meta.dirname, "..", "SPEC.md"), "utf8");
  const section = (text.split(`## ${heading}\n`)[1] ?? "").split("\n## ")[0] ?? "";
  return section
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .map((line) =>
      line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim().replaceAll("`", "")),
    )
    .filter((cells) => !cells.every((cell) => cell === "---"));
}

describe("the states of a guarded call", () => {
  it("step as SPEC.md says, in every state under every step", () => {
    const [[, ...steps] = [], ...rows] = rowsOf("Table");
    const specified = Object.fromEntries(
      rows.map(([state = "", ...cells]) => [
        state,
        Object.fromEntries(cells.map((cell, index) => [steps[index], cell === "-" ? null : cell])),
      ]),
    );
    expect(specified).toEqual(guardSteps);
    const named = (heading: string): string[] =>
      rowsOf(heading)
        .slice(1)
        .map(([name = ""]) => name);
    expect(named("States")).toEqual(Object.keys(guardSteps));
    expect(named("Steps")).toEqual(Object.keys(guardSteps.done));
  });

  it("end in one of four, all of which can be reached", () => {
    const states = Object.keys(guardSteps) as GuardState[];
    expect(states.filter(isFinal)).toEqual(["done", "kept", "raised", "passed-on"]);
    const reached = new Set<GuardState>(["checking"]);
    for (const state of reached)
      for (const next of Object.values(guardSteps[state])) if (next !== null) reached.add(next);
    expect([...reached].toSorted()).toEqual(states.toSorted());
  });

  it("are told to people by kind", () => {
    const action = (message: string): string => recoveryAction(classifyOverflow({ status: 400, message }));
    expect(action("invalid token")).toMatch(/pass the error on/);
    expect(action("prompt is too long")).toMatch(/^shorten oversized tool results, then compact/);
    expect(action("413 Payload Too Large")).toMatch(/^leave images and files out/);
    expect(action("Request too large, tokens per minute: Limit 10, Requested 20")).toMatch(/^raise CONTEXT_OVERFLOW/);
  });

  it("try the remedies of SPEC.md, each once", () => {
    const specified = Object.fromEntries(
      rowsOf("Remedies")
        .slice(1)
        .map(([kind = "", list = ""]) => [kind, list === "-" ? [] : list.split(", ")]),
    );
    expect(specified).toEqual(remedyLadders);
    for (const kind of Object.keys(remedyLadders) as OverflowKind[]) {
      const used = new Set<Remedy>();
      for (let remedy = nextRemedy(kind, used); remedy !== null; remedy = nextRemedy(kind, used)) used.add(remedy);
      expect([...used]).toEqual(remedyLadders[kind]);
      expect([...used].filter((remedy) => ownCures.has(remedy)).length).toBeLessThanOrEqual(1);
    }
  });
});
