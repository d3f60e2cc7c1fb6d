import process from "node:process";
import { parentPort } from "node:worker_threads";

// The build in JavaScript: neither Java nor a program of its own is needed, and nothing is loaded from elsewhere.
process.env["RECHECK_BACKEND"] = "pure";
process.env["RECHECK_SYNC_BACKEND"] = "pure";
const { checkSync } = await import("recheck");

/** An expression it cannot judge in this time is written in another way. */
const mostMs = 120_000;
/** By steps and never by the clock, so that a busy machine does not change a verdict. */
const limits = { timeout: mostMs, attackTimeout: null, incubationTimeout: null, randomSeed: 1 } as const;

parentPort?.on("message", (expression: string) => {
  const end = expression.lastIndexOf("/");
  const result = checkSync(expression.slice(1, end), expression.slice(end + 1), limits);
  const summary = result.status === "unknown" ? `not judged (${result.error.kind})` : result.complexity.summary;
  const attack = result.status === "vulnerable" ? `, as on ${result.attack.pattern.slice(0, 120)}` : "";
  parentPort?.postMessage({ status: result.status, summary: `${summary}${attack}` });
});
