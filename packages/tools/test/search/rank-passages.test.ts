import { describe, expect, it } from "vitest";
import { rankPassages } from "../../src/search/rank-passages.ts";
import { withoutCopies } from "../../src/workspace/without-copies.ts";

function order(query: string, texts: Readonly<Record<string, string>>): readonly string[] {
  const passages = Object.entries(texts).map(([name, text]) => ({ name, text }));
  return rankPassages(passages, query).map(({ passage }) => passage.name);
}

const filler = "The build went through and nothing was changed in it. ";

describe("rankPassages", () => {
  it("a word that one passage has outweighs several that nearly all have", () => {
    const common = "the session store reads the session and the store writes the session ";
    const many = Object.fromEntries(
      Array.from({ length: 12 }, (_, index) => [`common ${index}`, common.repeat(index + 1)]),
    );
    expect(order("the session store zanzibar", { ...many, rare: "zanzibar" })[0]).toBe("rare");
  });

  it("a file's name is found by its parts in their order, not by a text about the same things", () => {
    const texts = {
      about:
        "The session of an agent: each agent has a session, and a session has one agent. Ts is short for time stamp.",
      file: `Read src/core/agent-session.ts. ${filler}`,
      far: filler,
    };
    expect(order("grep -n dispose src/core/agent-session.ts", texts)[0]).toBe("file");
    expect(order("agent-session.ts", texts)[0]).toBe("file");
  });

  it("an identifier in lower case is the same identifier, in the question and in the text", () => {
    const texts = { code: "I renamed parseHttpHeaderValue.", typed: "see parsehttpheadervalue", none: filler };
    expect(order("parsehttpheadervalue", texts).toSorted()).toEqual(["code", "typed"]);
    expect(order("parseHttpHeaderValue", texts).toSorted()).toEqual(["code", "typed"]);
  });

  it("words that stand together as in the question come before the same words apart", () => {
    const texts = {
      apart: "The pool is closed for the winter; a connection to the station leaves at nine.",
      near: "At nine the connection pool for the station was closed in winter; it leaves a mark.",
      none: filler,
    };
    expect(order("connection pool", texts)).toEqual(["near", "apart"]);
  });

  it("a command is found by what it is about, whatever folder and switches it is run with", () => {
    const texts = {
      folder: "cd /home/ann/work/shop && ls --all --color\ncd /home/ann/work/shop && ls --all --color",
      subject: "The parser in packages/pricing/src/tax-table.ts rounds up.",
      switches: "cd /home/ann/work/shop && npm run check -- --all",
    };
    expect(order("cd /home/ann/work/shop && npx check --all packages/pricing/src/tax-table.ts", texts)[0]).toBe(
      "subject",
    );
  });

  it("what weighs less counts less, and no less than nothing", () => {
    const passages = [
      { name: "printed", text: "falcon", pieces: [{ text: "falcon", weight: 0.5 }] },
      { name: "said", text: "falcon", pieces: [{ text: "falcon", weight: 1 }] },
      { name: "neither", text: "heron" },
    ];
    expect(rankPassages(passages, "falcon").map(({ passage }) => passage.name)).toEqual(["said", "printed"]);
  });

  it("two that answer equally well stay in their order, so that the caller's decides", () => {
    expect(order("falcon", { newer: "a falcon", none: filler, older: "a falcon" })).toEqual(["newer", "older"]);
  });

  it("words of a pair in two pieces are no pair", () => {
    const passages = [
      { name: "two", text: "", pieces: ["the connection", "pool was closed"].map((text) => ({ text, weight: 1 })) },
      { name: "one", text: "", pieces: ["the connection pool", "was closed"].map((text) => ({ text, weight: 1 })) },
      { name: "none", text: filler },
    ];
    expect(rankPassages(passages, "connection pool").map(({ passage }) => passage.name)).toEqual(["one", "two"]);
  });
});

describe("withoutCopies", () => {
  const note = "The staging database is called orchid, and deploys happen on Tuesday after the review.";
  const kept = (texts: readonly string[], limit = 5): readonly string[] =>
    withoutCopies(texts, limit, (text) => text).kept;

  it("shows what says the same once, and what comes behind it instead", () => {
    const texts = [note, `${note}\n`, note.toUpperCase(), "Another note about the database of the shop.", note];
    expect(kept(texts, 2)).toEqual([note, texts[3]]);
    expect(withoutCopies(texts, 5, (text) => text).leftOut).toBe(3);
  });

  it("keeps what differs in what it says, in the order of its words, or is too short to tell", () => {
    const turned = note.split(" ").toReversed().join(" ");
    const longer = `${note} ${filler.repeat(2)}`;
    expect(kept([note, turned, longer])).toEqual([note, turned, longer]);
    expect(kept(["heron", "heron"])).toEqual(["heron", "heron"]);
    expect(kept(["", ""])).toEqual(["", ""]);
  });
});
