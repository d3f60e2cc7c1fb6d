import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { TurnMarkState } from "../src/turn-mark.ts";
import { createScriptedModel } from "./scripted-model.ts";
import { createFixture, key } from "./session-fixture.ts";

const text = readFileSync(new URL("../SPEC.md", import.meta.url), "utf8");

/** The names in the first column of a section's table. */
function fieldsOf(section: string): Set<string> {
  const [, body = ""] = text.split(`## \`${section}\``);
  const rows = (body.split("\n## ")[0] ?? "").split("\n").filter((line) => line.startsWith("| `"));
  return new Set(
    rows.flatMap((row) => [...(row.split("|")[1] ?? "").matchAll(/`(\w+)`/g)].map(([, name]) => name ?? "")),
  );
}

describe("SPEC.md", () => {
  it("names every field that is written, and every state a turn can be in", async () => {
    const script = createScriptedModel(
      { error: new Error("no") },
      "resumed",
      { text: "half", hangs: true },
      {
        calls: [{ id: "1", name: "echo", arguments: { text: "x" } }],
      },
    );
    const { sessions, records } = createFixture({ script });
    await using session = await sessions.open(key);
    await session.runTurn("1").catch(() => null);
    await session.resume();
    const controller = new AbortController();
    await session.runTurn("2", { signal: controller.signal, onDelta: () => controller.abort() });
    await session.runTurn("3", { maxSteps: 1, idempotencyKey: "k" });
    const written = { "throughline.turn": new Set<string>(), "throughline.call": new Set<string>() };
    const states = new Set<string>();
    for (const { record } of await records()) {
      const fields = written[record["customType"] as keyof typeof written] as Set<string> | undefined;
      for (const field of Object.keys((record["data"] as object | undefined) ?? {})) fields?.add(field);
      if (record["customType"] === "throughline.turn") states.add((record["data"] as { state: string }).state);
    }
    for (const [section, fields] of Object.entries(written))
      expect([...fields.difference(fieldsOf(section))]).toEqual([]);
    expect([...states].toSorted()).toEqual(["aborted", "done", "failed", "open", "step-limit"]);
  });

  it("names every state that a mark can have, and what a denied turn states", () => {
    const states: Readonly<Record<TurnMarkState, true>> = {
      open: true,
      done: true,
      aborted: true,
      failed: true,
      "step-limit": true,
      denied: true,
      waiting: true,
      interrupted: true,
    };
    const table = text.split("## States")[1]?.split("\n## ")[0] ?? "";
    for (const state of Object.keys(states)) expect(table).toContain(`\`${state}\``);
    expect(fieldsOf("throughline.turn")).toContain("denial");
  });
});
