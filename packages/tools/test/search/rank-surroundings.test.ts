import { describe, expect, it } from "vitest";
import { byWordsAndMeaning } from "../../src/search/passage-scorer.ts";
import { rankPassages } from "../../src/search/rank-passages.ts";
import type { RankablePassage } from "../../src/search/rankable-passage.ts";

interface Turn extends RankablePassage {
  readonly name: string;
}

/** A chat of one session, a turn a minute. */
function chat(texts: readonly string[], within = "session a", firstMs = Date.UTC(2026, 4, 3)): readonly Turn[] {
  return texts.map((text, index) => ({
    name: text,
    text,
    place: { within, first: index + 1, last: index + 1, tsMs: firstMs + index * 60_000 },
  }));
}

function order(query: string, turns: readonly Turn[]): readonly string[] {
  return rankPassages(turns, query).map(({ passage }) => passage.name);
}

const talk = ["Good morning, all.", "The bus was late again.", "What a nice day.", "See you on the other side."];

describe("rankPassages with places", () => {
  it("finds other forms of a word, and nothing that shares no word", () => {
    const turns = chat([...talk, "We compacted the session twice."]);
    expect(order("compactions", turns)).toEqual(["We compacted the session twice."]);
    expect(order("heron", turns)).toEqual([]);
  });

  it("the turn whose neighbors name the topic comes before the same turn elsewhere", () => {
    const said = "It costs 40 euros a month.";
    const here = chat(["Shall we rent the allotment?", said, "The allotment has a well."]);
    const there = chat(["Shall we order pizza?", `${said} `, "The pizza has olives."], "session b");
    expect(order("what does the allotment cost a month", [...there, ...here])[0]).toBe(said);
  });

  it("between long answers the neighbors count for nothing", () => {
    const long = (text: string): string => `${text} ${"and then we looked at many other things too ".repeat(60)}`;
    const beside = chat([long("allotment"), long("It costs 40 euros."), long("allotment")], "session b");
    const alone = chat([long("one"), long("It costs 40 euros. "), long("two")]);
    const ranked = rankPassages([...alone, ...beside], "costs euros");
    expect(ranked).toHaveLength(2);
    expect(ranked[0]?.score).toBeCloseTo(ranked[1]?.score ?? 0, 10);
  });

  it("prefers what the named speaker said", () => {
    const turns = chat(["Ann: I bought a kayak.", "Bob: I sold a kayak.", ...talk]);
    expect(order("what did Bob do with the kayak", turns)[0]).toBe("Bob: I sold a kayak.");
    expect(order("what did Ann do with the kayak", turns)[0]).toBe("Ann: I bought a kayak.");
  });

  it.each(["What did I plant in May?", "What did I plant in May 2026?", "Was habe ich im Mai gepflanzt? plant"])(
    "takes the record of the month that is asked for: %s",
    (query) => {
      const may = chat(["I plant beans."], "session a", Date.UTC(2026, 4, 3));
      const others = [5, 6, 7].flatMap((month) =>
        chat([`I plant ${month} rows of roses.`], `session ${month}`, Date.UTC(2026, month, 3)),
      );
      expect(order(query, [...others, ...may])[0]).toBe("I plant beans.");
    },
  );

  it.each(["What may I plant?", "What did I plant in May 2025?", "Did we march to plant trees?"])(
    "takes a verb for no month, and another year for no match: %s",
    (query) => {
      const may = chat(["I plant beans with them."], "session a", Date.UTC(2026, 4, 3));
      const march = chat(["I plant beans with them. "], "session b", Date.UTC(2026, 2, 3));
      const june = chat(["I plant beans with them.  "], "session c", Date.UTC(2026, 5, 3));
      expect(order(query, [...june, ...may, ...march])).toEqual([june[0]?.name, may[0]?.name, march[0]?.name]);
    },
  );
});

describe("byWordsAndMeaning", () => {
  const items = Array.from({ length: 50 }, (_, index) => ({ item: index, words: 1 - index / 50, meaning: 0 }));

  it("a scorer without an opinion changes nothing, on whatever scale", () => {
    for (const meaning of [0, -7, 1e9])
      expect(byWordsAndMeaning(items.map((each) => ({ ...each, meaning }))).map(({ item }) => item)).toEqual(
        items.map(({ item }) => item),
      );
  });

  it("a good scorer brings up a place that words rank low, and a bad one cannot bury the best", () => {
    const last = items.map((each) => ({ ...each, meaning: each.item === 10 ? 1 : 0 }));
    expect(byWordsAndMeaning(last).findIndex(({ item }) => item === 10)).toBeLessThan(7);
    const reversed = items.map((each) => ({ ...each, meaning: each.item }));
    expect(byWordsAndMeaning(reversed)[0]?.item).toBe(0);
  });
});
