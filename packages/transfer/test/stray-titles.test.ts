import { foreignFormats } from "@throughline/foreign-formats";
import { createMemoryStore } from "@throughline/store-memory";
import { describe, expect, it } from "vitest";
import { CompanionFiles } from "../src/companion-files.ts";
import { fullLook } from "../src/search-look.ts";
import { fixtureFolder, importAll, jsonLines } from "./fixture-folder.ts";

const project = ".claude/projects/-w";
const idOf = (digit: number): string => `0f0e0d0c-0000-4000-8000-00000000000${digit}`;
const fileOf = (digit: number): string => `${project}/${idOf(digit)}.jsonl`;
const lineId = (session: number, number: number): string => `0000000${number}-0000-4000-8000-00000000000${session}`;

function said(session: number, number: number, type: "user" | "assistant"): object {
  const parentUuid = number === 1 ? null : lineId(session, number - 1);
  const place = { parentUuid, isSidechain: false, uuid: lineId(session, number), sessionId: idOf(session), cwd: "/w" };
  return { ...place, type, timestamp: "2026-05-07T18:25:01.000Z", message: { role: type, content: "Text" } };
}

const conversation = (session: number): readonly object[] => [said(session, 1, "user"), said(session, 2, "assistant")];
const summary = (title: string, leafUuid: string): object => ({ type: "summary", summary: title, leafUuid });

async function titlesOf(files: Readonly<Record<string, string>>, path: string): Promise<Record<string, unknown>> {
  using folder = fixtureFolder(files);
  await using store = createMemoryStore();
  await importAll(store, folder.at(path));
  const { sessions } = await store.list();
  return Object.fromEntries(sessions.map(({ sessionId, entry }) => [sessionId.at(-1), [entry.title, entry.titleBy]]));
}

describe("a title in the file of another Claude Code session", () => {
  const files = {
    [fileOf(1)]: jsonLines(...conversation(1)),
    [fileOf(2)]: jsonLines(summary("Fix the login bug", lineId(1, 2)), ...conversation(2)),
  };

  it.each([".claude", project])("is that of the session whose line it names: %s", async (path) => {
    const titles = await titlesOf(files, path);
    expect(titles["1"]).toEqual(["Fix the login bug", "import"]);
    expect(titles["2"]).not.toContain("Fix the login bug");
  });

  it("counts for a session that is imported alone", async () => {
    expect(await titlesOf(files, fileOf(1))).toEqual({ "1": ["Fix the login bug", "import"] });
  });

  it("is less than the title in the session's own file", async () => {
    const own = { type: "ai-title", aiTitle: "Own title", sessionId: idOf(1) };
    const titles = await titlesOf({ ...files, [fileOf(1)]: jsonLines(own, ...conversation(1)) }, project);
    expect(titles["1"]).toEqual(["Own title", "import"]);
  });

  it("is the one of the newest line where there are several, in a long beginning and beside broken lines", async () => {
    const others = Array.from({ length: 200 }, (_, at) => summary(`Other ${at}`, `other-${at}`));
    const head = jsonLines(summary("Newer", lineId(1, 2)), ...others, summary("Older", lineId(1, 1)));
    const odd = '{"type":"summary","summary":7,"leafUuid":"x"}\n{"type":"summary","leafUuid":\n';
    const titles = await titlesOf({ ...files, [fileOf(2)]: odd + head + jsonLines(...conversation(2)) }, project);
    expect(titles["1"]).toEqual(["Newer", "import"]);
  });

  it("is read once for all sessions of a folder", async () => {
    using folder = fixtureFolder(files);
    const format = foreignFormats.get("claude-code") as NonNullable<ReturnType<typeof foreignFormats.get>>;
    const companions = new CompanionFiles(fullLook);
    const first = await companions.strayTitlesFor(format, folder.at(fileOf(1)));
    expect([...first]).toEqual([[lineId(1, 2), "Fix the login bug"]]);
    expect(await companions.strayTitlesFor(format, folder.at(fileOf(2)))).toBe(first);
  });
});
