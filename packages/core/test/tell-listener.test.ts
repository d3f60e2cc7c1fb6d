import { tellListener } from "../src/tell-listener.ts";
import { createMemoryStore } from "@throughline/store-memory";
import { describe, expect, it } from "vitest";

describe("a listener that fails", () => {
  it("is told all the same, and fails nothing", async () => {
    const told: number[] = [];
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    process.on("unhandledRejection", note);
    try {
      tellListener(null, 0);
      tellListener<number>((event) => {
        told.push(event);
        throw new Error("thrown");
      }, 1);
      tellListener<number>(async (event) => {
        told.push(event);
        await Promise.reject(new Error("rejected"));
      }, 2);
      await using store = createMemoryStore({ onEvent: () => Promise.reject(new Error("of a store")) as never });
      const ref = { namespace: "", agentId: "main", key: "agent:main:main" };
      await store.save(ref, { sessionId: "s1" }, { ifRevision: null });
      await store.append(ref, [{ type: "message", message: { role: "user", content: "one" } }]);
      // Node tells of rejections nobody handled once the microtasks are done.
      await new Promise((resolve) => void setImmediate(resolve));
    } finally {
      process.off("unhandledRejection", note);
    }
    expect([told, unhandled]).toEqual([[1, 2], []]);
  });
});
