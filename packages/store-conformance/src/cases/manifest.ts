import assert from "node:assert/strict";
import { reopened } from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";

const levels = ["none", "process", "disk"] as const;

export const manifestCases: readonly ConformanceCase[] = [
  {
    id: "manifest/frozen",
    demand: "the capabilities cannot be changed and stay the same",
    async run({ store }) {
      const { capabilities } = store;
      for (const part of [capabilities, capabilities.limits, capabilities.durabilities, capabilities.idempotency]) {
        assert.ok(Object.isFrozen(part), "every part of the capabilities is frozen");
      }
      const before = structuredClone(capabilities);
      await store.list();
      assert.deepEqual(structuredClone(store.capabilities), before);
    },
  },
  {
    id: "manifest/complete",
    demand: "the capabilities are those of this specification and agree with each other",
    async run({ store: { capabilities } }) {
      assert.equal(capabilities.specification, 1);
      assert.ok(capabilities.name.length > 0, "the store has a name");
      assert.deepEqual(
        levels.filter((level) => capabilities.durabilities.includes(level)),
        [...capabilities.durabilities],
      );
      assert.ok(
        capabilities.durabilities.includes(capabilities.defaultDurability),
        "the default durability is one of those declared",
      );
      for (const [name, limit] of Object.entries(capabilities.limits)) {
        assert.ok(Number.isSafeInteger(limit) && limit > 0, `the limit ${name} is a positive whole number`);
      }
      assert.ok(capabilities.idempotency.rememberedAppends >= 4096, "at least 4,096 keyed appends are remembered");
      assert.ok(
        capabilities.idempotency.rememberedMs >= 24 * 60 * 60 * 1000,
        "keyed appends are remembered for at least a day",
      );
    },
  },
  {
    id: "manifest/facets",
    demand: "a facet exists exactly when it is declared",
    async run({ store }) {
      for (const facet of ["search", "watch", "fork", "maintenance", "partials"] as const) {
        assert.equal(store[facet] !== undefined, store.capabilities[facet] ?? false, `the facet ${facet}`);
      }
    },
  },
  {
    id: "manifest/reopen",
    demand: "a store opened again declares the same",
    needs: ["reopen"],
    async run({ under, store }) {
      const before = structuredClone(store.capabilities);
      assert.deepEqual(structuredClone((await reopened(under)).capabilities), before);
    },
  },
];
