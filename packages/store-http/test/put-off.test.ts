import { expect, it } from "vitest";
import type { Clock } from "@throughline/core";
import { openHttpStore } from "@throughline/store-http";

const served = {
  capabilities: { name: "test", durabilities: [], limits: {}, idempotency: {} },
  limits: { bodyBytes: 1_000_000 },
};

/** A server that puts requests off before it answers them. */
function puttingOff(times: number, status: number, code: string, retryAfter: string | null) {
  let left = times;
  return async (): Promise<Response> => {
    if (left-- <= 0) return Response.json(served);
    const problem = { code, message: code, outcome: "not-applied" };
    return new Response(JSON.stringify(problem), {
      status,
      headers: {
        "content-type": "application/problem+json",
        ...(retryAfter === null ? {} : { "retry-after": retryAfter }),
      },
    });
  };
}

/** A clock whose waits are over at once, but for the deadline of an operation. */
function quickClock(timeoutMs: number): { readonly clock: Clock; readonly waits: number[] } {
  const waits: number[] = [];
  const sleep = (ms: number, signal?: AbortSignal): Promise<void> => {
    if (ms !== timeoutMs) {
      waits.push(ms);
      return Promise.resolve();
    }
    return new Promise((_, reject) => signal?.addEventListener("abort", () => reject(new Error("ended"))));
  };
  return { clock: { nowMs: () => 0, sleep }, waits };
}

const options = { url: "http://127.0.0.1:1", timeoutMs: 1234, retries: 3 };

it.each([
  [429, "RATE_LIMITED"],
  [503, "STORE_OVERLOADED"],
])("waits as long as a server asks, however often: %i", async (status, code) => {
  const { clock, waits } = quickClock(1234);
  const store = await openHttpStore({ ...options, clock, fetch: puttingOff(40, status, code, "2") });
  expect(waits).toHaveLength(40);
  expect(waits.every((ms) => ms >= 2000 && ms <= 3000)).toBe(true);
  await store.close();
});

it("gives up after five minutes of such waits, and after its tries where no wait is named", async () => {
  const { clock, waits } = quickClock(1234);
  const fetch = puttingOff(1000, 429, "RATE_LIMITED", "60");
  await expect(openHttpStore({ ...options, clock, fetch })).rejects.toMatchObject({ code: "RATE_LIMITED" });
  expect(waits.slice(0, -3).reduce((sum, ms) => sum + ms, 0)).toBeGreaterThanOrEqual(300_000);
  const other = quickClock(1234);
  const without = puttingOff(1000, 429, "RATE_LIMITED", null);
  await expect(openHttpStore({ ...options, clock: other.clock, fetch: without })).rejects.toMatchObject({
    code: "RATE_LIMITED",
  });
  expect(other.waits).toHaveLength(3);
});
