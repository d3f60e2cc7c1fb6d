import { expect, it } from "vitest";
import { sessionFilter, type SessionFilter, type SessionRow } from "@throughline/core/internal";

const row = {
  name: "Fix the Login bug",
  cwd: "/src/app",
  program: "claude-code",
  key: "agent:main:cli:direct:a1",
  spawnedBy: null,
} as SessionRow;

const cases: readonly (readonly [filter: SessionFilter, isWanted: boolean, other?: Partial<SessionRow>])[] = [
  [{}, true],
  [{ words: "" }, true],
  [{ words: "login" }, true],
  [{ words: "  APP\tlogin claude a1 " }, true],
  [{ words: "login logout" }, false],
  [{ words: "own" }, true, { program: null }],
  [{ words: ".*" }, false],
  [{ programs: ["pi", "claude-code"] }, true],
  [{ programs: ["own"] }, false],
  [{ programs: ["own"] }, true, { program: null }],
  [{ programs: ["toString"] }, false],
  [{ folder: "/src/app" }, true],
  [{ folder: "/src/app/" }, true],
  [{ folder: "/src" }, true],
  [{ folder: "/" }, true],
  [{ folder: "/src/ap" }, false],
  [{ folder: "/src/app/x" }, false],
  [{ folder: "/src/../src/app" }, false],
  [{ folder: "C:\\work" }, true, { cwd: "C:\\work\\a" }],
  [{ folder: "/src" }, false, { cwd: null }],
  [{ isSpawned: false }, true],
  [{ isSpawned: true }, false],
  [{ isSpawned: false }, false, { spawnedBy: "agent:main:main" }],
  [{ isSpawned: true, words: "login" }, true, { spawnedBy: "agent:main:main" }],
];

it.each(cases.map(([filter, isWanted, other = {}]) => ({ filter, isWanted, other })))(
  "filters sessions: $filter of $other: $isWanted",
  ({ filter, isWanted, other }) => {
    expect(sessionFilter(filter)({ ...row, ...other })).toBe(isWanted);
  },
);
