import type { BaseMessage } from "@langchain/core/messages";
import { describe, expect, it } from "vitest";
import { createMemoryStore } from "@throughline/store-memory";
import { testSize } from "../../../tools/test-size.ts";
import { createCheckpointSaver } from "../src/checkpoint-saver.ts";
import { ai, at, conversationOf, human, messagesOf, outline, put, type Config } from "./scripted.ts";

/** Numbers that look random, the same ones for a seed. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * below);
  };
}

describe("random threads", () => {
  const seeds = Array.from({ length: testSize({ short: 12, long: 200 }) }, (_, seed) => seed + 1);

  it.each(seeds)(
    "gives every checkpoint back as it was put, and the newest one to other programs: seed %i",
    async (seed) => {
      const below = numbers(seed);
      const store = createMemoryStore();
      const saver = createCheckpointSaver({ store });
      let made = 0;
      const message = (): BaseMessage => {
        made += 1;
        return below(2) === 0 ? human(`h${made}`, `Said ${made}`) : ai(`a${made}`, `Reply ${made}`);
      };
      const changed = (list: readonly BaseMessage[]): readonly BaseMessage[] => {
        const place = below(list.length + 1);
        switch (below(8)) {
          case 0:
            return list.filter((_, index) => index !== place);
          case 1:
            return list.map((one, index) =>
              index === place ? (one.getType() === "ai" ? ai : human)(one.id ?? "", `Edited ${one.text}`) : one,
            );
          case 2:
            return [...list.slice(0, place), message(), ...list.slice(place)];
          case 3:
            return list.slice(place);
          case 4:
            return list.toReversed();
          default:
            return [...list, ...Array.from({ length: below(3) }, message)];
        }
      };
      const steps: { readonly config: Config; readonly messages: readonly BaseMessage[]; readonly n: number }[] = [];
      for (let step = 1; step <= 60; step++) {
        const parent = below(6) === 0 ? steps[below(steps.length)] : steps.at(-1);
        const messages = changed(parent?.messages ?? []);

        const config = await put(saver, parent?.config ?? at("t"), { messages, n: step }, { version: step });
        steps.push({ config, messages, n: step });
      }
      for (const one of [saver, createCheckpointSaver({ store })])
        for (const { config, messages, n } of steps) {
          const tuple = await one.getTuple(config);
          expect(messagesOf(tuple).map((given) => given.toDict())).toEqual(messages.map((given) => given.toDict()));
          expect(tuple?.checkpoint.channel_values["n"]).toBe(n);
        }
      const newest = messagesOf(await saver.getTuple(at("t")));
      expect(newest.length).toBe(steps.at(-1)?.messages.length);
      expect(await conversationOf(store, "t")).toEqual(outline(newest));
    },
  );
});
