import process from "node:process";
import { expect, it } from "vitest";
import { planCall, planFrame, planRebuiltFrame } from "../../src/wire/plan-call.ts";
import { splitRequest } from "../../src/wire/split-request.ts";
import { WireLog } from "../../src/wire/wire-log.ts";
import type { CallPlan } from "../../src/wire/plan-call.ts";
import type { SplitRequest } from "../../src/wire/split-request.ts";

function planned(text: string): { readonly log: WireLog; readonly split: SplitRequest; readonly plan: CallPlan } {
  const split = splitRequest("anthropic-messages", text);
  if (split === null) throw new Error("The request has no messages.");
  const log = new WireLog();
  return { log, split, plan: planCall(log, split, log.match(split)) };
}

it("a request that is blank for megabytes has no frame, and its messages are stored", () => {
  const blank = " ".repeat(17 * 1024 * 1024);
  const { log, split, plan } = planned(`{"messages":[{"role":"user","content":"Hello"}${blank}]}`);
  expect(plan.drafts).toHaveLength(1);
  const known = plan.nodes.map((node, index) => ({ node, text: split.units[index]?.text ?? null }));
  for (const { data, copies } of [planFrame(log, split, plan), planRebuiltFrame(log, known, split)])
    expect([data, copies]).toEqual([{ knownSeq: 0, frame: [], encoding: "base64" }, []]);
  const shorter = planned(`{"messages":[{"role":"user","content":"Hello"}${blank.slice(0, 3 * 1024 * 1024)}]}`);
  expect(planFrame(shorter.log, shorter.split, shorter.plan).data.encoding).toBe(undefined);
});

it("a request with tens of thousands of equal messages is compared in a moment", () => {
  const messages = Array.from({ length: 40_000 }, () => ({ role: "user", content: "Go on." }));
  const { log, split, plan } = planned(JSON.stringify({ messages }));
  const known = plan.nodes.map((node, index) => ({ node, text: split.units[index]?.text ?? null }));
  const began = process.cpuUsage();
  const { data, copies } = planRebuiltFrame(log, known, split);
  expect(process.cpuUsage(began).user / 1000).toBeLessThan(5000);
  expect([data.frame.length, copies]).toEqual([3, []]);
});
