import process from "node:process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildContext, createHistory, type HistoryTarget } from "@throughline/history";
import { historyTargets } from "../src/history-targets.ts";
import type { Context } from "@throughline/history";
import { createProviderSimulator, type ProviderSimulator } from "@throughline/testing";
import { foreignLog } from "./foreign-logs.ts";
import { thirdReading } from "./third-reading.ts";

/** Seeds of one run; a longer one is asked for by hand. */
const count = Number(process.env["THROUGHLINE_SEEDS"] ?? 150);
const first = Number(process.env["THROUGHLINE_FIRST_SEED"] ?? 1);
/** The simulator is asked over HTTP, which is slow. */
const everyNth = 20;

let simulator: ProviderSimulator;

beforeAll(async () => {
  simulator = createProviderSimulator({ fallback: () => "Fine." });
  await simulator.start();
});
afterAll(() => simulator.close());

/** Signatures that were made up are refused by whoever can check them, which says nothing of the shape. */
function isSealed(messages: readonly unknown[]): boolean {
  return /"signature":|"redacted_thinking"|"encrypted_content"/.test(JSON.stringify(messages));
}

/** What users and replies said, by record. */
function saidIn(context: Context): readonly (readonly [recordId: string, text: string])[] {
  return context.messages.flatMap(({ role, recordId, content }) =>
    role === "user" || role === "assistant"
      ? content.flatMap((block) =>
          block.type === "text" && block.text.trim() !== "" ? [[recordId, block.text] as const] : [],
        )
      : [],
  );
}

/** Texts of records that no repair speaks of and that are not sent. */
function lostWords(context: Context, target: HistoryTarget): readonly string[] {
  const { messages, repairs } = target.render(context);
  const sent = JSON.stringify(messages);
  const named = new Set(repairs.map(({ recordId }) => recordId));
  const isSent = (text: string): boolean => sent.includes(JSON.stringify(text.toWellFormed().trimEnd()).slice(1, -1));
  return saidIn(context).flatMap(([recordId, text]) => (named.has(recordId) || isSent(text) ? [] : [text]));
}

describe.each([...historyTargets.values()].map((target) => [target.name, target] as const))(
  "logs of other programs, for %s",
  (name, target) => {
    it("are valid by three readings, lose no words, and grow as they are built", async () => {
      for (let seed = first; seed < first + count; seed++) {
        const records = foreignLog(seed);
        const context = buildContext(records);
        const { messages } = target.render(context);
        if (messages.length > 0) expect(target.validate(messages, context.model?.modelId), `seed ${seed}`).toEqual([]);
        expect(lostWords(context, target), `seed ${seed}`).toEqual([]);
        const isInProcess = name === "gemini" || name === "mistral" || name === "bedrock";
        if (messages.length > 0 && (isInProcess || (seed % everyNth === 0 && !isSealed(messages)))) {
          expect(await thirdReading(simulator, name, messages, undefined), `seed ${seed}`).toBeNull();
        }
        const history = createHistory(target);
        for (const record of records) {
          history.append([record]);
          if (record.seq % 3 === 0) history.render();
        }
        expect(JSON.stringify(history.render().messages), `seed ${seed}`).toBe(JSON.stringify(messages));
        expect(JSON.stringify(target.render(buildContext(records)).messages), `seed ${seed}`).toBe(
          JSON.stringify(messages),
        );
      }
    }, 600_000);
  },
);
