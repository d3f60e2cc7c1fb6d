import process from "node:process";
import { describe, expect, it } from "vitest";
import { shorten } from "../src/cells.ts";
import { layoutTable } from "../src/text-table.ts";
import { parseTime } from "../src/option-values.ts";
import { ageText, timeText } from "../src/time-text.ts";

const columns = [{ title: "KEY" }, { title: "LABEL", rank: 2 }, { title: "N", align: "right" as const, rank: 1 }];
const rows = [
  ["agent:main:main", "Home", "5"],
  ["agent:main:discord:group:123456789", "A\tlong\u001b[31m label", "1234"],
];

const text = (width: number | null): string[] => layoutTable(columns, rows, width).map((line) => line.text);

describe("layoutTable", () => {
  it("separates by tabs and keeps everything when it is not for a terminal", () => {
    expect(text(null)).toEqual(["agent:main:main\tHome\t5", "agent:main:discord:group:123456789\tA long label\t1234"]);
  });

  it("aligns on a terminal, with a heading", () => {
    expect(text(80)).toEqual([
      "KEY                                 LABEL            N",
      "agent:main:main                     Home             5",
      "agent:main:discord:group:123456789  A long label  1234",
    ]);
  });

  it("counts the vowels of Indian scripts that stand beside their letter", () => {
    const lines = layoutTable([{ title: "NAME" }, { title: "N" }], [["लॉगिन", "5"]], 80);
    expect(lines.map((line) => line.text)).toEqual(["NAME   N", "लॉगिन  5"]);
    expect(shorten("लॉगिन", 4, "end")).toBe("लॉ…");
  });

  it("leaves out columns by rank, then shortens what is widest, keeping head and tail", () => {
    expect(text(42)[0]).toBe("KEY                                    N");
    expect(text(20)).toEqual(["KEY", "agent:main:main", "agent:main:di…456789"]);
    expect(text(20).every((line) => line.length <= 20)).toBe(true);
  });

  it("leaves out the last columns on the narrowest terminals, so that no row wraps", () => {
    const four = ["NAME", "MESSAGES", "LAST", "KEY"].map((title) => ({ title }));
    const row = ["Look at the deployment", "2", "15 s", "agent:main:cli:direct:alpha"];
    const lines = (width: number): string[] => layoutTable(four, [row], width).map((line) => line.text);
    expect(lines(20)).toEqual(["NAME        MESSAGES", "Look a…ent  2"]);
    for (let width = 1; width <= 80; width++)
      expect([width, lines(width).every((line) => line.length <= width)]).toEqual([width, true]);
  });

  it("keeps what each column needs before it leaves one out, and leaves out empty ones", () => {
    const named = [
      { title: "NAME", least: 8, cut: "end" as const },
      { title: "STATE", rank: 1 },
      { title: "KEY", least: 5 },
    ];
    const lines = layoutTable(named, [["日本語で説明してください", "", "agent:main:main"]], 16);
    expect(lines.map((line) => line.text)).toEqual(["NAME      KEY", "日本語…   agen…n"]);
  });

  it("has signs of ASCII for a terminal without UTF-8, and no row is wider for that", () => {
    const cut = [{ title: "NAME", least: 5, cut: "end" as const }, { title: "N" }];
    for (let width = 1; width <= 40; width++) {
      const lines = layoutTable(cut, [["A long name… that · is cut", "5"]], width, true).map((line) => line.text);
      expect([width, lines.every((line) => line.length <= width && /^[ -~]*$/.test(line))]).toEqual([width, true]);
    }
    expect(layoutTable(cut, [["A long name… that", "5"]], 12, true)[1]?.text).toBe("A long...  5");
  });

  it("does not cut characters in half", () => {
    expect(shorten("🙂".repeat(20), 8)).toBe("🙂🙂…🙂");
    expect(shorten("👩‍👩‍👧‍👦 family", 8, "end")).toBe("👩‍👩‍👧‍👦 fami…");
    expect(shorten("/home/ada/app", 8, "start")).toBe("…ada/app");
  });
});

describe("times", () => {
  it.each([
    [0, "0 s"],
    [59_000, "59 s"],
    [61_000, "1 min"],
    [7_200_000, "2 h"],
    [10 * 86_400_000, "10 d"],
    [-5000, "0 s"],
  ])("tells an age of %i ms", (ageMs, expected) => {
    expect(ageText(1_700_000_000_000 - ageMs, 1_700_000_000_000)).toBe(expected);
  });

  it("gives months and years of what is old, and survives times that are none", () => {
    expect(ageText(1_600_000_000_000, 1_700_000_000_000)).toBe("3 y");
    expect(ageText(1_690_000_000_000, 1_700_000_000_000)).toBe("3 mo");
    expect([timeText(null), timeText(9e15)]).toEqual(["-", "-"]);
  });

  it.each([
    ["UTC", "2026-01-02 03:04:05+00:00"],
    ["Europe/Berlin", "2026-01-02 04:04:05+01:00"],
    ["America/St_Johns", "2026-01-01 23:34:05-03:30"],
    ["Pacific/Kiritimati", "2026-01-02 17:04:05+14:00"],
  ])("gives a time in the zone %s with its offset", (zone, text) => {
    const before = process.env["TZ"];
    process.env["TZ"] = zone;
    try {
      expect(timeText(Date.UTC(2026, 0, 2, 3, 4, 5, 999))).toBe(text);
      expect(Date.parse(timeText(Date.UTC(2026, 6, 2)))).toBe(Date.UTC(2026, 6, 2)); // in summer
      const midnight = Date.parse("2026-01-02T00:00"); // of the zone
      expect([parseTime("2026-01-02"), parseTime("2026-01-02T00:00:00.000")]).toEqual([midnight, midnight]);
      expect(parseTime(timeText(midnight))).toBe(midnight);
      expect([parseTime("2026-01"), parseTime("2026-01-02T00:00Z")]).toEqual([
        midnight - 86_400_000,
        Date.UTC(2026, 0, 2),
      ]);
      for (const end of [-8.64e15, 8.64e15]) expect(timeText(end)).toMatch(/^[+-]2?\d{5}-.*[+-]\d\d:\d\d$/);
    } finally {
      if (before === undefined) delete process.env["TZ"];
      else process.env["TZ"] = before;
    }
  });

  it("has any number of rows", () => {
    const rows = Array.from({ length: 200_000 }, (_, index) => [String(index)]);
    expect(layoutTable([{ title: "N", align: "right" }], rows, 40).at(-1)?.text).toBe("199999");
  });
});
