import { foreignFormats } from "@throughline/foreign-formats";
import { describe, expect, it } from "vitest";
import { folderOf, periodOf, programName, programNames } from "../src/format.ts";
import type { OutlineJson } from "../src/json.ts";
import { keySegment, placeOf, routeOf, sessionHref } from "../src/router.ts";
import { itemOf, mostItems, segmentsOf } from "../src/session/items.ts";
import { wordsOf } from "../src/session/mark-words.ts";
import { SessionOutline } from "../src/session/session-outline.ts";

function route(href: string): ReturnType<typeof routeOf> {
  return routeOf(new URL(href, "http://127.0.0.1"));
}

describe("addresses", () => {
  it("give back every key, with its agent only where the key does not name it", () => {
    for (const key of ["agent:main:x", "a/b?c#d", "günther\u202e", "~", "agent:main:import:direct:1", "日本"]) {
      const href = sessionHref(placeOf({ key, agentId: "main", archiveId: null }), { at: 412 });
      const found = route(href);
      expect(found.page === "session" && found.place.key, href).toBe(key);
      expect(found.query.get("at")).toBe("412");
      expect(found.query.get("agent")).toBe(key.startsWith("agent:main:") ? null : "main");
    }
  });

  it("name no page where the key is damaged, and the transcript where the view is unknown", () => {
    expect(route("/inspect/s/~_w").page).toBe("missing");
    expect(route("/inspect/s/%").page).toBe("missing");
    expect(route("/inspect/nowhere").page).toBe("missing");
    expect(route(`/inspect/s/${keySegment("k")}?v=evil`)).toMatchObject({ page: "session", view: "transcript" });
  });
});

describe("names and times", () => {
  it("are those of the formats for every program", () => {
    for (const [format, { program }] of foreignFormats) expect(programName(format), format).toBe(program);
    expect(programNames.every((name) => programName(name) !== name || name === "opencode")).toBe(true);
    expect(programName(null)).toBe("Throughline");
  });

  it("shorten home directories, and only those", () => {
    expect(folderOf("/home/ada/app")).toBe("~/app");
    expect(folderOf("/Users/ada")).toBe("~");
    expect(folderOf("/homes/ada/app")).toBe("/homes/ada/app");
  });

  it("divide a list by days and years", () => {
    const nowMs = new Date(2026, 10, 30, 12).getTime();
    const daysAgo = (days: number): string => periodOf(nowMs - days * 86_400_000, nowMs);
    expect([0, 1, 5, 20, 100, 700].map(daysAgo)).toEqual([
      "Today",
      "Yesterday",
      "Last 7 days",
      "Last 30 days",
      "2026",
      "2024",
    ]);
    expect(periodOf(Number.NEGATIVE_INFINITY)).toBe("Unknown time");
  });

  it("reads the words of a search without its signs", () => {
    expect(wordsOf('"login bug" auth* x')).toEqual(["login", "bug", "auth"]);
  });
});

/** Makes an outline of messages; every `every`-th record is a result, and those of `sides` are beside the conversation. */
function outlineOf(count: number, parents: readonly (number | null)[] = []): SessionOutline {
  const outline = new SessionOutline();
  const all = Array.from({ length: count }, (_, index) => index);
  const part: OutlineJson = {
    sessionId: "s",
    lastSeq: count,
    names: { type: ["message"], role: ["user", "toolResult"], tool: [] },
    columns: {
      seq: all.map(() => 1),
      parent: all.map((index) => parents[index] ?? (index === 0 ? 0 : 1)),
      type: all.map(() => 0),
      role: all.map((index) => (index % 2 === 0 ? 0 : 1)),
      tool: all.map(() => null),
      side: all.map(() => 0),
      bytes: all.map(() => 100),
      tsMs: all.map((index) => (index === 1 ? null : 10)),
    },
    nextFromSeq: null,
  };
  outline.take(part);
  return outline;
}

describe("the outline", () => {
  it("adds up seqs and times, and finds records", () => {
    const outline = outlineOf(5);
    expect([0, 1, 2].map((index) => outline.tsMsAt(index))).toEqual([10, null, 20]);
    expect([0, 1, 3, 9].map((seq) => outline.indexOf(seq))).toEqual([-1, 0, 2, 4]);
    expect(outline.lastLoaded).toBe(5);
  });

  it("marks the records on the way to the head, and ends at a circle", () => {
    // Record 4 follows record 1, so that 2 and 3 are another branch.
    expect([...outlineOf(4, [0, 1, 1, 3]).onBranch(4)]).toEqual([1, 0, 0, 1]);
    expect([...outlineOf(2, [0, 0]).onBranch(2)]).toEqual([0, 1]);
    expect([...outlineOf(3, [0, 1, -1]).onBranch(3)]).toEqual([0, 0, 1]);
  });

  it("divides long sessions into lists that Chromium can show, and finds the item of a record", () => {
    const outline = outlineOf(2 * mostItems + 10_000);
    const segments = segmentsOf(outline, { hasSide: false, marks: new Set() });
    expect(segments.map(({ items }) => items.length)).toEqual([40_000, 15_000]);
    expect(segments.map(({ fromSeq }) => fromSeq)).toEqual([1, 80_001]);
    const [first] = segments;
    if (first === undefined) throw new Error("no segment");
    // Record 4 is a result, which stands in the row of its call.
    expect([1, 3, 4, 5].map((seq) => itemOf(outline, first, seq))).toEqual([0, 1, 1, 2]);
  });
});
