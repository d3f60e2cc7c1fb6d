import { sessionRef } from "@throughline/core";
import { describe, expect, it } from "vitest";
import { styledWidth } from "../src/cells.ts";
import { signsOf } from "../src/chat/screen/signs.ts";
import { createStyles } from "../src/chat/screen/styles.ts";
import { type ListFacts, listRows } from "../src/picker/list-rows.ts";
import type { ListedSession } from "../src/picker/listed-session.ts";
import { NameMatches } from "../src/picker/name-matches.ts";
import { PickerList } from "../src/picker/picker-list.ts";

const nowMs = 1_800_000_000_000;

function session(name: string, changes: Partial<ListedSession> = {}): ListedSession {
  const ref = sessionRef({ key: "agent:main:any" });
  return {
    id: name,
    ref,
    sessionId: name,
    name,
    isNamed: true,
    format: "claude-code",
    program: "Claude Code",
    folder: "~/src/a-folder-with-a-long-name/and/more/of/it",
    messageCount: 12_345,
    updatedAtMs: nowMs - 86_400_000 * 300,
    isArchived: false,
    isAnswering: false,
    sourcePath: null,
    scope: "folder",
    ...changes,
  };
}

function match(each: ListedSession, positions: readonly number[] = []) {
  return { session: each, positions: new Set(positions) };
}

const nameOf = ({ name }: ListedSession): string => name;
const signal = new AbortController().signal;

function facts(changes: Partial<ListFacts> = {}): ListFacts {
  const programs = [["Claude Code", 1200] as const, ["Codex", 3] as const];
  const common = { folder: "~/src/app", scope: "all", filter: "", programs, hiddenCount: 20, reading: null } as const;
  return { ...common, escape: "new session", nameOf, isActive: () => true, nowMs, ...changes };
}

describe("the rows of the picker", () => {
  it("are never wider than the terminal, from 20 to 300 columns", () => {
    const sessions = [
      session("Fix the login bug ".repeat(20)),
      session("認証モジュールを直す".repeat(20), { isArchived: true }),
      session("👩‍👩‍👧 family", { program: "GitHub Copilot CLI" }),
    ];
    const list = new PickerList();
    list.setNames(sessions.map((each) => match(each, [0, 1])));
    const hit = {
      ref: sessionRef({ key: "k" }),
      sessionId: "s",
      seq: 4,
      id: "i",
      role: "assistant",
      tsMs: 1,
      score: 1,
    };
    const snippet = "日本 the word ".repeat(40);
    const found = { hit: { ...hit, snippet, highlights: [[3, 6] as const] }, more: 12 };
    list.setTexts({ sessions: [found], hitCount: 50, isCut: true }, () => sessions[0] ?? null);
    for (let columns = 20; columns <= 300; columns++)
      for (const filter of ["", "login", "a filter that is longer than a narrow terminal is wide"]) {
        const parts = { styles: createStyles(true), signs: signsOf({}), columns };
        const { rows, caret } = listRows(list, facts({ filter }), 20, parts);
        for (const row of rows) expect(styledWidth(row)).toBeLessThan(columns);
        expect(caret.column).toBeLessThan(columns);
      }
  });

  it("keep the chosen session while others come and go, and show it", () => {
    const sessions = Array.from({ length: 100 }, (_, at) => session(`s${at}`));
    const list = new PickerList();
    list.setNames(sessions.map((each) => match(each)));
    list.move(50);
    expect(list.chosen.id).toBe("s49");
    list.setNames([session("new"), ...sessions].map((each) => match(each)));
    expect(list.chosen.id).toBe("s49");
    const parts = { styles: createStyles(false), signs: signsOf({}), columns: 80 };
    const { rows } = listRows(list, facts(), 12, parts);
    expect(rows).toHaveLength(12);
    expect(rows.filter((row) => row.startsWith(" ❯ s49 "))).toHaveLength(1);
    list.setNames(sessions.slice(0, 10).map((each) => match(each)));
    expect(list.chosen.id).toBe("s9");
  });
});

describe("the filter by name", () => {
  it("takes each word, finds scattered letters and accents, and puts the best first", async () => {
    const sessions = ["Deploy the login page", "Fix the login bug", "Résumé parser", "認証を直す"].map((name) =>
      session(name, { folder: "", program: "" }),
    );
    const names = new NameMatches();
    const find = async (query: string): Promise<readonly string[]> =>
      (await names.find(sessions, query, nameOf, signal)).map(({ session: { name } }) => name);
    expect(await find("bug login")).toEqual(["Fix the login bug"]);
    expect(await find("login")).toHaveLength(2);
    expect(await find("resume")).toEqual(["Résumé parser"]);
    expect(await find("認証")).toEqual(["認証を直す"]);
    expect(await find("ftlb")).toEqual(["Fix the login bug"]);
    expect(await find("nothing of this")).toEqual([]);
  });
});
