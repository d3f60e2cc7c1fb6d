import { describe, expect, it } from "vitest";
import { sessionBusy, stillAnswering, turnHolder } from "../src/turn-holder.ts";

describe("who holds a turn", () => {
  it.each([
    ["pid 19258 on vm/a7c7/4026 started 512", "another process (pid 19258)"],
    ["worker-1", "another process"],
    ["pid 12x", "another process"],
  ])("%s is %s", (owner, expected) => {
    expect(turnHolder(owner)).toBe(expected);
  });

  it("is named in the refusal, with the seconds that are left; the rest is in the details", () => {
    const turn = { turnId: "60694", owner: "pid 19258 on vm/a7c7 started 5", leaseUntilMs: 48_007, fence: 3 };
    const error = sessionBusy(turn, 20_000);
    expect([error.code, error.message, error.remedy]).toEqual([
      "SESSION_BUSY",
      "Another process (pid 19258) is still answering in this session. Its lock expires in 29 s.",
      "Try again in 29 s.",
    ]);
    expect(error.details).toEqual({ ...turn, leaseLeftMs: 28_007 });
    expect(stillAnswering("worker-1")).toBe("Another process is still answering in this session.");
  });
});
