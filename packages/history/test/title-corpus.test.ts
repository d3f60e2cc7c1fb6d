import { readFileSync } from "node:fs";
import { join } from "node:path";
import { blocksText } from "@throughline/core/internal";
import { describe, expect, it } from "vitest";
import { titleOf } from "../src/title-of.ts";
import { corpusFolder } from "./corpus.ts";
import { titledMessages } from "./titled-messages.ts";

/** Returns the user's messages of a session of pi by their numbers, or the first one of each conversation. */
function textsOf(file: string): ReadonlyMap<number, string> {
  const text = readFileSync(join(corpusFolder ?? "", file), "utf8");
  if (file.endsWith(".json")) {
    const all = JSON.parse(text) as readonly { conversations: readonly { from: string; value: string }[] }[];
    const first = all.map(({ conversations }) => conversations.find(({ from }) => from === "human")?.value ?? "");
    return new Map(first.entries());
  }
  const messages = text.split("\n").flatMap((line) => {
    if (line === "") return [];
    const { message } = JSON.parse(line) as { readonly message?: { readonly role: string; readonly content: unknown } };
    return message?.role === "user" ? [blocksText(message.content)] : [];
  });
  return new Map(messages.map((message, index) => [index + 1, message]));
}

describe.skipIf(corpusFolder === undefined)("the titles of 100 real messages", () => {
  it.each(Object.keys(titledMessages))("of %s are those of a person, or the known others", (file) => {
    const texts = textsOf(file);
    for (const [message, title, byRules = title] of titledMessages[file] ?? [])
      expect([message, titleOf([texts.get(message) ?? ""])]).toEqual([message, byRules]);
  });

  it("are those of a person for at least 72", () => {
    const all = Object.values(titledMessages).flat();
    expect(all).toHaveLength(100);
    expect(all.filter(([, , byRules]) => byRules === undefined).length).toBeGreaterThanOrEqual(72);
  });
});
