import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  afterExpiry,
  afterFailure,
  type CheckpointState,
  freshCheckpointState,
  phaseAt,
  readCheckpointState,
} from "../src/checkpoint-state.ts";
import { checkpointTrigger } from "../src/checkpoint-trigger.ts";
import { firstColumn, specTables } from "@throughline/test-kit";
import { checkpointSteps } from "../src/checkpoint-steps.ts";

const spec = join(import.meta.dirname, "../SPEC.md");
const window = { windowTokens: 200_000, userMessages: 0 };

describe("the phases of SPEC.md", () => {
  it("step as the table says, in every phase under every step", () => {
    const [[, ...steps] = [], ...rows] = specTables(spec, "Table")[0] ?? [];
    const specified = Object.fromEntries(
      rows.map(([phase = "", ...cells]) => [
        phase,
        Object.fromEntries(
          cells.map((cell, index) => [
            steps[index],
            cell === "-" ? null : { to: cell.replace("!", ""), starts: cell.endsWith("!") },
          ]),
        ),
      ]),
    );
    expect(specified).toEqual(checkpointSteps);
    expect(firstColumn(specTables(spec, "Phases")[0] ?? [])).toEqual(Object.keys(checkpointSteps));
    expect(firstColumn(specTables(spec, "Steps")[0] ?? [])).toEqual(Object.keys(checkpointSteps.idle));
  });

  it("follow from what the entry keeps and the time", () => {
    const running = { owner: "a", untilMs: 500, percent: 50 };
    expect(phaseAt(freshCheckpointState, 1)).toBe("idle");
    expect(phaseAt({ ...freshCheckpointState, running }, 499)).toBe("running");
    expect(phaseAt({ ...freshCheckpointState, running }, 500)).toBe("backing-off");
    expect(phaseAt({ ...freshCheckpointState, notBeforeMs: 500 }, 499)).toBe("backing-off");
    // A clock that was set back by days.
    const nextWeekMs = 7 * 86_400_000;
    expect(phaseAt({ ...freshCheckpointState, notBeforeMs: nextWeekMs }, 0)).toBe("idle");
    expect(phaseAt({ ...freshCheckpointState, running: { ...running, untilMs: nextWeekMs } }, 0)).toBe("backing-off");
    const failed = afterFailure({ ...freshCheckpointState, running }, 1000);
    expect(failed).toMatchObject({ failures: 1, notBeforeMs: 61_000, running: null });
    expect(afterFailure(failed, 1000).notBeforeMs).toBe(121_000);
    expect(afterFailure({ ...failed, failures: 40 }, 0).notBeforeMs).toBe(3_600_000);
    expect(afterExpiry({ ...freshCheckpointState, running }, 499).running).toEqual(running);
    expect(afterExpiry({ ...freshCheckpointState, running }, 500)).toMatchObject({ failures: 1, running: null });
  });
});

describe("the triggers", () => {
  it("are a quarter, a half and three quarters of the window, each once a cycle", () => {
    const due: (number | null)[] = [];
    let state: CheckpointState = freshCheckpointState;
    for (let tokens = 10_000; tokens <= 190_000; tokens += 10_000) {
      const trigger = checkpointTrigger(state, { ...window, tokens });
      state = trigger.state;
      if (trigger.due !== null) due.push(trigger.percent);
    }
    expect(due).toEqual([25, 50, 75]);
    const next = readCheckpointState({ sessionId: "s", compactionCount: 1, checkpoints: state });
    expect(checkpointTrigger(next, { ...window, tokens: 60_000 })).toMatchObject({ due: "tokens", percent: 25 });
  });

  it("make one of several crossed at once, at the highest [C54]", () => {
    const { state, percent } = checkpointTrigger(freshCheckpointState, { ...window, tokens: 160_000 });
    expect(percent).toBe(75);
    expect(checkpointTrigger(state, { ...window, tokens: 165_000 }).due).toBeNull();
  });

  it("are ten messages of the user, or as many as set [CKP-04, C21]", () => {
    const at = (userMessages: number, turnThreshold?: number): unknown =>
      checkpointTrigger(
        freshCheckpointState,
        { tokens: 6000, windowTokens: null, userMessages },
        turnThreshold === undefined ? {} : { turnThreshold },
      ).due;
    expect([at(9), at(10), at(14, 15), at(15, 15), at(99, 0)]).toEqual([null, "messages", null, "messages", null]);
  });

  it("whichever comes first, and none under the floor, where nothing is crossed either [CKP-05, CKP-06, C22]", () => {
    const small = { windowTokens: 8000, userMessages: 20 };
    const below = checkpointTrigger(freshCheckpointState, { ...small, tokens: 4999 });
    expect(below).toEqual({ state: freshCheckpointState, due: null, percent: null });
    expect(checkpointTrigger(below.state, { ...small, tokens: 5000 })).toMatchObject({ due: "tokens", percent: 50 });
    expect(checkpointTrigger(freshCheckpointState, { ...window, tokens: null, userMessages: 99 }).due).toBeNull();
  });

  it("are off when they are off, and a change of topic is one only by a hook", () => {
    const full = { ...window, tokens: 160_000, userMessages: 50 };
    expect(checkpointTrigger(freshCheckpointState, full, { enabled: false }).due).toBeNull();
    const quiet = { ...window, tokens: 6000 };
    expect(checkpointTrigger(freshCheckpointState, quiet).due).toBeNull();
    expect(checkpointTrigger(freshCheckpointState, { ...quiet, topicChanged: true }).due).toBe("topic");
  });

  it("never fire more often than there are thresholds, however the size moves", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 250_000 }), { maxLength: 60 }), (sizes) => {
        let state: CheckpointState = freshCheckpointState;
        let fired = 0;
        for (const tokens of sizes) {
          const trigger = checkpointTrigger(state, { ...window, tokens });
          state = trigger.state;
          if (trigger.due !== null) fired++;
        }
        expect(fired).toBeLessThanOrEqual(3);
      }),
    );
  });
});
