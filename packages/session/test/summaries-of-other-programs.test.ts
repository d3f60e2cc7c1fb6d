import { describe, expect, it } from "vitest";
import type { SummaryRequest } from "@throughline/core";
import { createScriptedModel } from "./scripted-model.ts";
import { scriptedSessions, talk } from "./scripted-sessions.ts";
import { key, workingSummary } from "./whole-turn-fixture.ts";

describe("a conversation that begins with the summary of another program", () => {
  it.each(["[Previous conversation summary]", "[Previous context summary]"])(
    "is summarized with it as a summary, and not as words of the user: %s [C29c]",
    { tags: ["slow"] },
    async (prefix) => {
      const asked: SummaryRequest[] = [];
      const script = createScriptedModel();
      const { sessions } = scriptedSessions(script, {
        summarizers: [
          {
            summarize: (request) => {
              asked.push(request);
              return Promise.resolve({ summary: workingSummary(1), source: "s", usage: null });
            },
          },
        ],
      });
      const session = await sessions.open(key);
      await session.append([
        { type: "message", message: { role: "user", content: `${prefix}\nNever paint quay 7 red.` } },
        { type: "message", message: { role: "assistant", content: "Understood, I have the context." } },
      ]);
      await talk(session, script, { turns: 8 });
      expect(await session.compact()).toMatchObject({ kind: "compacted" });
      expect(asked[0]?.text).toContain("[Summary of the earlier messages]: Never paint quay 7 red.");
      expect(asked[0]?.text).not.toContain(prefix);
      // What the user wants is taken from the user's own words.
      expect(JSON.stringify((await session.messages()).messages)).not.toContain("The user's wishes: Never paint");
      await sessions.close();
    },
  );
});
