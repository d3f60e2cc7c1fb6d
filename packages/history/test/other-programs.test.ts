import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildContext } from "@throughline/history";
import { historyTargets } from "../src/history-targets.ts";
import { createProviderSimulator, type ProviderSimulator } from "@throughline/testing";
import { otherPrograms } from "./other-programs.ts";
import { thirdReading } from "./third-reading.ts";

let simulator: ProviderSimulator;

beforeAll(async () => {
  simulator = createProviderSimulator({ fallback: () => "Fine." });
  await simulator.start();
});
afterAll(() => simulator.close());

const inProcess: ReadonlySet<string> = new Set(["gemini", "mistral", "bedrock"]);

describe.each([...historyTargets.values()].map((target) => [target.name, target] as const))(
  "conversations in the shapes of other programs, for %s",
  (name, target) => {
    it.each(otherPrograms)("%s: valid by two readings wherever it is cut, for every model", async (_name, records) => {
      for (let cut = 1; cut <= records.length; cut++) {
        const context = buildContext(records.slice(0, cut));
        for (const to of [undefined, null, { provider: "anthropic", modelId: "claude-sonnet-4-5" }]) {
          const { messages, repairs } = target.render(context, to === undefined ? {} : { target: to });
          if (messages.length === 0) continue;
          const sent = JSON.stringify(messages);
          const named = new Set(repairs.map(({ recordId }) => recordId));
          for (const { recordId, content } of context.messages) {
            const texts = content.flatMap((block) => (block.type === "text" ? [block.text] : []));
            const isSent = texts.every((text) =>
              sent.includes(JSON.stringify(text.trim().toWellFormed()).slice(1, -1)),
            );
            expect(isSent || named.has(recordId), `${recordId} at cut ${cut}`).toBe(true);
          }
          const model = to === undefined ? context.model?.modelId : to?.modelId;
          expect(target.validate(messages, model), `cut ${cut}`).toEqual([]);
          // Signatures that were made up are refused by whoever can check them.
          const isChecked = inProcess.has(name) || (to === null && (cut % 3 === 0 || cut === records.length));
          const verdict = isChecked ? await thirdReading(simulator, name, messages, undefined) : null;
          expect(verdict, `cut ${cut}`).toBeNull();
        }
      }
    });
  },
);
