import { createCapabilities, createHandleLife } from "@throughline/store-kit/internal";
import { defaultStoreLimits, quote, refused } from "@throughline/core/internal";
import type { SessionEvent } from "@throughline/core";
import { describe, expect, it } from "vitest";

const base = { name: "test", durabilities: ["process", "disk"], persistent: true, writers: "one-host" } as const;

describe("createCapabilities", () => {
  it("declares no facet, the strongest durability and core's limits unless told otherwise", () => {
    const capabilities = createCapabilities(base);
    expect(capabilities).toMatchObject({ ...base, specification: 1, defaultDurability: "disk", search: false });
    expect(capabilities.limits).toEqual(defaultStoreLimits);
    const told = { defaultDurability: "process", facets: { search: true }, limits: { pageRecords: 3 } } as const;
    expect(createCapabilities({ ...base, ...told })).toMatchObject({
      defaultDurability: "process",
      search: true,
      watch: false,
      limits: { ...defaultStoreLimits, pageRecords: 3 },
    });
  });

  it("is frozen in every part", () => {
    const { durabilities, limits, ...capabilities } = createCapabilities(base);
    expect([durabilities, limits, capabilities.idempotency].every((part) => Object.isFrozen(part))).toBe(true);
    expect(Object.isFrozen(createCapabilities(base))).toBe(true);
  });

  it("refuses limits that are no whole numbers from 1 on", () => {
    for (const pageRecords of [0, -1, 1.5, Number.NaN, Infinity]) {
      const create = () => createCapabilities({ ...base, limits: { pageRecords } });
      expect(create).toThrow(expect.objectContaining({ code: "CONFIG_INVALID" }));
    }
  });
});

describe("createHandleLife", () => {
  it("refuses operations once the handle is closed or the signal aborted", () => {
    const life = createHandleLife(undefined);
    const reason = new Error("enough");
    expect(() => life.begin(AbortSignal.abort(reason))).toThrow(
      expect.objectContaining({ code: "ABORTED", outcome: "not-applied", cause: reason }),
    );
    expect(() => life.begin(new AbortController().signal)).not.toThrow();
    expect([life.end(), life.end()]).toEqual([true, false]);
    expect(() => life.begin()).toThrow(expect.objectContaining({ code: "STORE_CLOSED", outcome: "not-applied" }));
  });

  it("ends once, after what is tracked, and gives every caller the same end", async () => {
    const life = createHandleLife(undefined);
    const steps: string[] = [];
    const works = [Promise.withResolvers<string>(), Promise.withResolvers<string>()] as const;
    const first = life.track(() => works[0].promise).finally(() => steps.push("first"));
    const ends = [1, 2].map(() =>
      life.close(
        () => (steps.push("release"), Promise.resolve()),
        () => steps.push("told"),
      ),
    );
    expect(ends[0]).toBe(ends[1]);
    expect(() => life.begin()).toThrow(expect.objectContaining({ code: "STORE_CLOSED" }));
    // What had begun may begin more, and what fails is waited for all the same.
    const second = life.track(() => works[1].promise).catch(() => steps.push("second"));
    works[0].resolve("done");
    expect(await first).toBe("done");
    works[1].reject(new Error("no"));
    await Promise.all([second, ...ends]);
    expect(steps[0]).toBe("told");
    expect(steps.filter((step) => step === "release")).toHaveLength(1);
    expect(steps.indexOf("release")).toBeGreaterThan(steps.indexOf("first"));
  });

  it("gives a release that fails to every caller of close", async () => {
    const life = createHandleLife(undefined);
    const failure = new Error("the disk is gone");
    const ends = [1, 2].map(() => life.close(() => Promise.reject(failure)));
    expect(await Promise.allSettled(ends)).toEqual(ends.map(() => ({ status: "rejected", reason: failure })));
  });

  it("tells the listener of every event although it throws", () => {
    const heard: string[] = [];
    const life = createHandleLife(({ name }) => {
      heard.push(name);
      throw new Error("the listener is broken");
    });
    const events = ["session-created", "session-archived"].map(
      (name) => ({ name, ref: { namespace: "", agentId: "main", key: "k" }, sessionId: "s" }) as SessionEvent,
    );
    life.announce(...events);
    expect(heard).toEqual(["session-created", "session-archived"]);
  });
});

describe("refused", () => {
  it("says that nothing was changed", () => {
    const error = refused("INPUT_INVALID", "No.", { field: 1 }, "cause");
    expect([error.code, error.outcome, error.details, error.cause]).toEqual([
      "INPUT_INVALID",
      "not-applied",
      { field: 1 },
      "cause",
    ]);
  });

  it("quotes any value without failing over it", () => {
    const cycle: Record<string, unknown> = {};
    cycle["self"] = cycle;
    expect([quote("a\n"), quote(undefined), quote(5n), quote(cycle)]).toEqual([
      '"a\\n"',
      "undefined",
      "5",
      "[object Object]",
    ]);
  });
});
