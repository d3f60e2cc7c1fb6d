import { afterAll, describe, expect, it } from "vitest";
import { kinds } from "./json-shapes.ts";
import { objects, runChild, temporaryDirectory } from "./harness.ts";
import { isLongRun } from "../../../tools/test-size.ts";

const directory = temporaryDirectory();
afterAll(() => directory.remove());

interface Step {
  readonly name: string;
  readonly ok: boolean;
  readonly figures: Readonly<Record<string, number>>;
}

async function demo(
  ...args: readonly string[]
): Promise<{ readonly code: number | null; readonly ok: unknown; readonly steps: readonly Step[] }> {
  const { code, stdout } = await runChild(directory.path, ["demo", "--json", ...args]);
  expect(kinds(stdout)).toEqual(["demo"]);
  const [result] = objects(stdout);
  return { code, ok: result?.["ok"], steps: result?.["steps"] as readonly Step[] };
}

describe("the demonstration", () => {
  it("talks through kill -9, a restart, a small window and a torn file, and loses nothing it acknowledged", async () => {
    const { code, ok, steps } = await demo();
    expect([code, ok]).toEqual([0, true]);
    const figures = Object.fromEntries(steps.map((step) => [step.name, step.figures]));
    expect(figures["kill -9"]).toMatchObject({ lost: 0, acknowledged: expect.any(Number) });
    expect(figures["restart"]?.["messages"]).toBeGreaterThanOrEqual(60);
    expect(figures["restart"]).toMatchObject({ violations: 0 });
    expect(figures["window"]?.["equal"]).toBe(figures["window"]?.["requests"]);
    expect(figures["window"]?.["shortened"]).toBeGreaterThan(0);
    expect(figures["compare"]).toMatchObject({ sessions: 3, different: 0 });
  });

  it.runIf(isLongRun)("sees a record that was taken away, and ends with 1", async () => {
    const { code, ok, steps } = await demo("--sabotage");
    expect([code, ok]).toEqual([1, false]);
    expect(steps.filter((step) => !step.ok).map(({ name }) => name)).toEqual(["compare"]);
  });
});
