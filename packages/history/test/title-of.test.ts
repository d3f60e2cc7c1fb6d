import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { TitleFinder, titleOf } from "../src/title-of.ts";

const table: readonly (readonly [text: string, title: string | null])[] = [
  [
    "alright, read @packages/agent/src/main.ts @packages/tui/src/tui-renderer.ts in full",
    "Read main.ts tui-renderer.ts in full",
  ],
  ["You're going to walk through a small set of tasks.", "Walk through a small set of tasks"],
  ["Help me refactor the auth module.", "Refactor the auth module"],
  [
    "Hi, I have some ingredients and I want to cook something. Can you help?",
    "I have some ingredients and I want to cook something",
  ],
  [
    "Can you please fix the login bug in /home/me/src/app/auth/login.ts? It fails on Safari.",
    "Fix the login bug in login.ts",
  ],
  [
    "日本語で説明してください。とても長い文章なのでタイトルは途中で切られるはずですがどうでしょうか",
    "日本語で説明してください。とても長い文章なのでタイトルは途…",
  ],
  ["my key is sk-abcdefghijklmnop please use", "My key is [key] please use"],
  ["bot 1234567890:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw is silent", "Bot [key] is silent"],
  ["gsk_abcdefghijklmnopqrstuvwxyzABCDEFGH is refused", "[key] is refused"],
  ["the secret wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY is refused", "The secret [key] is refused"],
  ["why \u001b[1;31merror: no such file\u001b[0m here", "Why error: no such file here"],
  ["Use API_KEY=abcdef123456 for it", "Use API_KEY=[key] for it"],
  ["hello world app shows nothing", "Hello world app shows nothing"],
  ["right align the buttons", "Right align the buttons"],
  ["OK so now let's add dark mode", "Add dark mode"],
  ["1. first do x\n2. then y", "First do x"],
  ['Traceback (most recent call last):\n  File "a.py"\nwhy does this fail?', "Why does this fail?"],
  ["see https://github.com/foo/bar/issues/12?x=1 and fix it", "See github.com/…/12 and fix it"],
  ["session 3f2b8c1e-1111-4222-8333-444455556666 is broken", "Session 3f2b8c1e is broken"],
  ["<command-name>/review</command-name>\n<command-args>the last commit</command-args>", "/review the last commit"],
  ["<system-reminder>\nToday is Monday.\n</system-reminder>\nFix the <Button> in App.tsx", "Fix the Button in App.tsx"],
  ["<task>\nBuild a planner\n</task>\n<environment_details>files</environment_details>", "Build a planner"],
  ["[Mon 2026-01-05 12:30 UTC] book a table", "Book a table"],
  ["see [the docs](https://a.b/c/d) and ![x](y.png) now", "See the docs and now"],
  ["Fix `Vec<T>` in the parser", "Fix Vec in the parser"],
  ['Write a definition of "photoshop".', "Write a definition of photoshop"],
  ["no, that's not it. can you write a test script?", "Write a test script"],
  [
    "no, we want to put it into the container of pending messages",
    "No, we want to put it into the container of pending messages",
  ],
  ["wait, wtf\nthis looks wrong to me", "This looks wrong to me"],
  ["As a botanist, you are given a task to compute the growth of a fern", "Compute the growth of a fern"],
  ["How do I center a div?", "Center a div"],
  ["I'd like to know more about the movie Heat", "The movie Heat"],
  ["'/var/folders/jk/a b/Screenshot at 01.48.00.png'\nthis is what we had before", "This is what we had before"],
  ["+314 - Tips for themes\nkill this line", "Kill this line"],
  ["read.me says nothing useful", "read.me says nothing useful"],
  ["# AGENTS.md instructions for /home/u/p\n\n<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>", null],
  ["This session is being continued from a previous conversation that ran out of context.", null],
  ["[Request interrupted by user for tool use]", null],
  ["```\nerror TS2345\n```", null],
  ["hi", null],
  ["Please continue!", null],
  ["/clear", null],
  ["???", null],
  ["", null],
];

describe("titleOf", () => {
  it.each(table)("makes of %j: %j", (text, title) => {
    expect(titleOf([text])).toBe(title);
  });

  it("takes the first of five messages that gives a title", () => {
    expect(titleOf(["hi", "continue", "Fix the build"])).toBe("Fix the build");
    expect(titleOf(["hi", "hi", "hi", "hi", "hi", "Fix the build"])).toBeNull();
  });

  it("never holds a tag, a control character or a key, and is never wider than 60 cells", () => {
    const piece = fc.constantFrom(
      "<b>",
      "</b>",
      "<img src=x",
      "\u001b[31m",
      "\u202e",
      "a",
      " ",
      "\n",
      "[",
      "](x)",
      "/",
      "x/y/z.ts",
      "日本",
      "👩‍👩‍👧‍👦",
      "sk-abcdefghijkl",
      "hi ",
      "can you ",
      "`",
      "# ",
      ".",
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
        const title = titleOf([pieces.join("")]);
        if (title === null) return;
        expect(title).not.toMatch(/<[A-Za-z/]/);
        // oxlint-disable-next-line no-control-regex -- These are what must not be there.
        expect(title).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202a-\u202e]/);
        expect(title).not.toMatch(/(?<![A-Za-z0-9])sk-abcdefgh/);
        expect(title.trim()).toBe(title);
        expect([...new Intl.Segmenter("en").segment(title)].length).toBeLessThanOrEqual(60);
      }),
    );
  });
});

describe("TitleFinder", () => {
  const message = (content: unknown, fields: Readonly<Record<string, unknown>> = {}) => ({
    type: "message" as const,
    id: "a",
    parentId: null,
    timestamp: "2026-01-01T00:00:00.000Z",
    message: { role: "user" as const, content, timestamp: 0, ...fields },
  });

  it("reads text blocks of user messages, and no words of a program", () => {
    const finder = new TitleFinder();
    for (const record of [
      { ...message(""), message: null },
      { ...message(""), message: undefined },
      message("Store memories now", { source: "flush" }),
      message("Write the rest", { source: "continue" }),
      { ...message("Fix it"), type: "custom_message" as const },
      message([
        { type: "image", data: "", mimeType: "image/png" },
        { type: "text", text: "What is this error?" },
      ]),
      message("Something else"),
    ])
      finder.take(record as Parameters<TitleFinder["take"]>[0]);
    expect(finder.title).toBe("What is this error?");
  });
});
